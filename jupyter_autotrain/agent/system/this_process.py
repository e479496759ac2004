"""Threads and open files of this process, where the kernel shows them (Linux; proc(5))."""

from __future__ import annotations

import contextlib
import os


def has_threads() -> bool:
    """Tell whether this process has another thread, of Python or not."""
    return len(os.listdir("/proc/self/task")) > 1


def open_files() -> dict[str, str]:
    """Return the open files by their descriptors."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
    return found
