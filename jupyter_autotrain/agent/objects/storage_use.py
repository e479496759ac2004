"""The files of homes' experiments on a volume, and the removal of those whose experiments are no more.

The manager's side uses this where it has the volume mounted; else its text is run in a pod, so it imports nothing else
of the package. Python 3.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Sequence

_EXPERIMENTS = "experiments"  # as `layout` tells
_ARCHIVES = "archives"
_UNPACKED = "data/archives"
_REMOVED = ".removed-"
_REST_S = 3600.0


def note(storage: str, user: str, sha256: str) -> None:
    """Note that an experiment uses an archive, before it is looked for.

    Args:
        storage: The root of the volume.
        user: Its home and its name, as HOME/EXPERIMENT.
        sha256: Of the archive.

    Raises:
        OSError: It cannot be written.
    """
    folder = f"{storage}/{_EXPERIMENTS}/{user}/{_ARCHIVES}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{sha256}", "w", encoding="utf-8"):
        pass


def experiments(storage: str, home: str) -> dict[str, int]:
    """Return the experiments of a home that have something there, with the bytes that their trials keep."""
    root = f"{storage}/{_EXPERIMENTS}/{home}"
    return {name: _size(f"{root}/{name}") for name in _names(root)}


def _size(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it was removed just now
                total += os.lstat(f"{place}/{name}").st_size
    return total


def remove(storage: str, home: str, names: Sequence[str]) -> None:
    """Remove all that experiments of a home have there, and the archives that no other uses.

    Raises:
        OSError: It cannot be removed.
    """
    used: set[str] = set()
    for name in names:
        folder = f"{storage}/{_EXPERIMENTS}/{home}/{os.path.basename(name)}"
        used.update(_names(f"{folder}/{_ARCHIVES}"))
        with contextlib.suppress(FileNotFoundError):  # it has nothing there
            shutil.rmtree(folder)
    for sha256 in sorted(used):
        _remove_archive(storage, sha256)
    for name in _names(f"{storage}/{_UNPACKED}"):
        path = f"{storage}/{_UNPACKED}/{name}"
        if _REMOVED in name and time.time() - os.lstat(path).st_ctime > _REST_S:  # by a process that was killed
            shutil.rmtree(path, ignore_errors=True)


def _remove_archive(storage: str, sha256: str) -> None:
    """Remove an archive, unless something uses it; one that is used again just now is put back.

    So an experiment that has noted its use of the archive finds it, or sends it again.
    """
    target = f"{storage}/{_UNPACKED}/{sha256}"
    removed = f"{target}{_REMOVED}{os.getpid()}"
    if _is_used(storage, sha256) or not os.path.isdir(target):
        return
    os.rename(target, removed)
    if _is_used(storage, sha256):
        with contextlib.suppress(OSError):  # it was sent again meanwhile
            os.rename(removed, target)
    shutil.rmtree(removed, ignore_errors=True)


def _is_used(storage: str, sha256: str) -> bool:
    root = f"{storage}/{_EXPERIMENTS}"
    users = [f"{root}/{home}/{name}" for home in _names(root) for name in _names(f"{root}/{home}")]
    return any(os.path.exists(f"{user}/{_ARCHIVES}/{sha256}") for user in users)


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def main(storage: str, arguments: Sequence[str]) -> None:
    """Answer in a pod that has the volume.

    `list HOME` prints names and bytes as JSON, `remove HOME NAME...`, `note HOME/EXPERIMENT SHA256`.
    """
    do, home, *names = arguments
    if do == "remove":
        remove(storage, home, names)
    elif do == "note":
        note(storage, home, names[0])
    else:
        print(json.dumps(experiments(storage, home)))  # noqa: T201 - read at the other end of the connection
