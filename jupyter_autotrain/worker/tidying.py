"""Taking away, when a trial has ended, the files that only a running one needs.

What it printed, reported, saved and wrote stays, and so does `status.json`.
"""

from __future__ import annotations

import contextlib
import os

from jupyter_autotrain.core import wire

_DRAFT = ".draft"


def tidy(directory: str, bundle: str) -> None:
    """Remove what has served its purpose. Never raises, and may be cut short anywhere: what is left does no harm.

    Args:
        directory: The trial directory; nothing of the trial runs any more.
        bundle: The experiment's bundle: links into it in `work/` go.
    """
    _remove(f"{directory}/{wire.TRIAL_FILE}")
    for stream in (wire.STDOUT, wire.STDERR):
        _remove_empty(f"{directory}/{stream}")
    for name in _names(directory):
        if name.endswith(_DRAFT):
            _remove(f"{directory}/{name}")
    _clear(f"{directory}/{wire.CONTROL}")
    _unlink_shipped(f"{directory}/{wire.WORK}", f"{bundle}/files/")
    for folder in wire.FOLDERS:
        _remove_folder(f"{directory}/{folder}")


def _names(folder: str) -> list[str]:
    if os.path.islink(folder):
        return []
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _remove_folder(path: str) -> None:
    with contextlib.suppress(OSError):  # it holds something that stays
        os.rmdir(path)


def _remove_empty(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.lstat(path).st_size == 0:
            os.unlink(path)


def _clear(folder: str) -> None:
    """Remove the files of a folder."""
    for name in _names(folder):
        _remove(f"{folder}/{name}")


def _unlink_shipped(folder: str, shipped: str) -> None:
    """Remove, at any depth, links to shipped files, what was compiled from them, and folders that are empty then."""
    for name in _names(folder):
        path = f"{folder}/{name}"
        if os.path.islink(path):
            if os.readlink(path).startswith(shipped):
                _remove(path)
        elif name == "__pycache__":
            _clear(path)
            _remove_folder(path)
        elif os.path.isdir(path):
            _unlink_shipped(path, shipped)
            _remove_folder(path)
