"""The removal, when a trial has ended, of the files that only a running one needs.

What it printed, reported, saved and wrote stays, and so does `status.json`.
"""

from __future__ import annotations

import contextlib
import os
import stat

from jupyter_autotrain.agent import files, wire

_DRAFT = ".draft"


def remove_temporary_files(directory: str, bundle: str) -> None:
    """Remove the files that only a running trial needs.

    This never raises, and may be cut short anywhere: rests do no harm.

    Args:
        directory: The trial directory; nothing of the trial runs any more.
        bundle: The experiment's bundle: links into it in `work/` go.
    """
    _unlink_data(directory)
    _remove(f"{directory}/{wire.TRIAL_FILE}")
    for name in _names(directory):
        if name.endswith(_DRAFT):
            _remove(f"{directory}/{name}")
        elif name.partition("-")[0] in {wire.STDOUT, wire.STDERR, wire.LAUNCHER_LOG}:  # that of any rank
            _remove_empty(f"{directory}/{name}")
    _clear(f"{directory}/{wire.CONTROL}")
    _unlink_shipped(f"{directory}/{wire.WORK}", f"{bundle}/files")
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
        found = os.lstat(path)
        if found.st_size == 0 and found.st_nlink == 1:  # into one with several links another node may still write
            os.unlink(path)


def _clear(folder: str) -> None:
    """Remove the files of a folder."""
    for name in _names(folder):
        _remove(f"{folder}/{name}")


def _unlink_data(directory: str) -> None:
    """Remove the links to the files that `data:` names."""
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):  # the trial has written over the file
        trial = files.read_json(directory, wire.TRIAL_FILE)
        for entry in trial.get("data", ()) if isinstance(trial, dict) else ():
            path = f"{directory}/{wire.WORK}/{entry['work_path']}"
            if entry["work_path"] and os.path.islink(path) and os.readlink(path) == entry["path"]:
                os.unlink(path)


def _unlink_shipped(work: str, shipped: str) -> None:
    """Remove the links to shipped files, copies that are as they were, and files compiled from them.

    Their folders go too where these are empty then. It goes by the shipped files, since the trial may have made folders
    of any depth, and links that lead elsewhere.
    """
    real = os.path.realpath(work)
    for folder, _, names in os.walk(shipped, topdown=False):
        inside = os.path.relpath(folder, shipped)
        there = real if inside == "." else f"{real}/{inside}"
        if os.path.realpath(there) != there:
            continue
        for name in names:
            if _is_unchanged(f"{there}/{name}", f"{folder}/{name}"):
                _remove(f"{there}/{name}")
        _clear(f"{there}/__pycache__")
        _remove_folder(f"{there}/__pycache__")
        _remove_folder(there)


def _is_unchanged(path: str, shipped: str) -> bool:
    """Tell whether a file is the link to a shipped one, or a copy of it that was not written to."""
    try:
        if os.path.islink(path):
            return os.readlink(path) == shipped
        mine = os.lstat(path)
        theirs = os.lstat(shipped)
    except OSError:
        return False
    return stat.S_ISREG(mine.st_mode) and (mine.st_size, mine.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)
