"""Linux namespaces that live as long as their first process, which ends when its standard input closes.

So they end with the process that made them, killed or not; the kernel ends what still runs in them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence

_CLONE_NEWNET = 0x40000000


def search_path() -> str:
    """Where programs are looked for, those of the administrator too."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def begin(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start the first process of a namespace, and wait until it prints `ready`."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PATH": search_path()},
    )  # fmt: skip
    expect(process, "ready")
    return process


def expect(process: subprocess.Popen[str], word: str) -> None:
    """Wait for the next line that a first process prints.

    Raises:
        RuntimeError: It is another one, or there is none.
    """
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != word:
        end(process)
        raise RuntimeError(f"A host of the lab did not start: {line!r} came where {word!r} was expected.")


def end(process: subprocess.Popen[str]) -> None:
    """End a first process, and with it its namespaces."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait(timeout=240)


def _enter_network(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def inside_network(pid: int) -> Iterator[None]:
    """Put the calling thread, and all threads and processes that it starts, into the network of a process."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter_network(there)
        yield
    finally:
        _enter_network(here)
        os.close(here)
        os.close(there)
