"""The trial directories of one home on its host, by experiment: `jobs/HOME/EXPERIMENT-NUMBER-ATTEMPT`.

Runs on a host: only the standard library of Python 3.9.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.trial import trial_lock

CONTACT = "contact"  # beside the trial directories: touched while a manager of the home is there


def sizes(folder: Path) -> dict[str, int]:
    """Return the experiments in a home's folder that have trial directories and no trial that runs, with their bytes.

    Raises:
        OSError: It cannot be looked at.
    """
    found: dict[str, int] = {}
    running = set()
    for experiment, directory in _directories(folder):
        if trial_lock.is_held(str(directory)):
            running.add(experiment)
        found[experiment] = found.get(experiment, 0) + _size_bytes(directory)
    return {experiment: found[experiment] for experiment in found if experiment not in running}


def remove(folder: Path, experiments: Collection[str]) -> None:
    """Delete the trial directories of these experiments, but for those of trials that run.

    Raises:
        OSError: One cannot be deleted.
    """
    for experiment, directory in list(_directories(folder)):
        if experiment in experiments and not trial_lock.is_held(str(directory)):
            remove_job(directory)


def remove_job(directory: Path) -> None:
    """Delete a trial directory, and the folder of the home when it was the last one.

    Raises:
        OSError: It cannot be deleted.
    """
    if directory.is_dir():
        shutil.rmtree(directory)
    with contextlib.suppress(OSError):  # another agent may do the same
        if [path.name for path in directory.parent.iterdir()] in ([], [CONTACT]):
            shutil.rmtree(directory.parent)


def _directories(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        experiment, *numbers = path.name.rsplit("-", 2)
        if len(numbers) == 2 and path.is_dir():
            yield experiment, path


def _size_bytes(directory: Path) -> int:
    total = 0
    for name, kind in files.walk(str(directory)):
        if kind == stat.S_IFREG:
            with contextlib.suppress(FileNotFoundError):  # it went meanwhile
                total += (directory / name).lstat().st_size
    return total


def touch_contacts(folders: Iterable[Path]) -> None:
    """Note beside the trials of each manager served here that it is there: supervisors with a lease look at it."""
    for folder in folders:
        with contextlib.suppress(OSError):  # a full disk
            (folder / CONTACT).touch(mode=0o600)
