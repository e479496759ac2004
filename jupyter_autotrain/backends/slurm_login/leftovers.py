"""What is left of a home on a cluster: trials that no experiment needs, environments that no trial uses.

Runs on the login node.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from jupyter_autotrain.backends.slurm_login.batch import BatchFolder
from jupyter_autotrain.backends.slurm_login.job_queue import JobQueue
from jupyter_autotrain.worker.environments import eviction

_GRACE_S = 5.0
_YOUNG_S = 60.0  # a younger batch may be of an experiment that came after it was looked which ones need theirs
_OF_OURS = "autotrain-"


class Leftovers:
    """Finds them, and removes them.

    Args:
        root: The folder of everything of ours, of all homes.
        queue: Lists jobs.
        cancel: Ends the trial of a directory, within a grace.
    """

    def __init__(self, root: Path, queue: JobQueue, cancel: Callable[[Path, float], object]) -> None:
        self._root = root
        self._queue = queue
        self._cancel = cancel

    def find(self, folder: Path, experiments: Collection[str]) -> list[str]:
        """What is there of one home and of none of these experiments.

        Args:
            folder: Where the trial directories of that home lie.
            experiments: Ids of the experiments that may still need what is theirs.
        """
        found = [_told(batch) for batch in self._batches(folder, experiments)]
        return found + [_environment(name) for name in self._environments()]

    def remove(self, folder: Path, experiments: Collection[str]) -> list[str]:
        """Remove what `find` finds; gives what was removed."""
        removed = []
        for batch in list(self._batches(folder, experiments)):
            removed.append(_told(batch))
            for directory in batch.directories():
                self._cancel(directory, _GRACE_S)
            batch.remove()
        root = str(self._root / "environments")
        gone = [name for name in self._environments() if eviction.remove(root, name)]
        return removed + [_environment(name) for name in gone]

    def _batches(self, folder: Path, experiments: Collection[str]) -> Iterator[BatchFolder]:
        parent = self._root / "batches"
        for path in sorted(parent.iterdir()) if parent.is_dir() else ():
            batch = BatchFolder(self._root, path.name)
            # One that cannot be read may be another home's, or goes just now.
            with contextlib.suppress(OSError, ValueError):
                is_old = time.time() - path.stat().st_mtime > _YOUNG_S
                if is_old and _is_of(batch, folder) and not _experiments(batch) & set(experiments):
                    yield batch

    def _environments(self) -> list[str]:
        """None while there are jobs: the file system that nodes share may not show here what they have locked."""
        folder = self._root / "environments"
        if not folder.is_dir() or any(name.startswith(_OF_OURS) for name in self._queue.names_now()):
            return []
        return [name for name, _ in eviction.unused(str(folder))]


def _is_of(batch: BatchFolder, folder: Path) -> bool:
    directories = batch.directories()
    return bool(directories) and all(directory.is_relative_to(folder) for directory in directories)


def _experiments(batch: BatchFolder) -> set[str]:
    return {str(batch.trial(index).get("experiment_id")) for index in range(len(batch.directories()))}


def _told(batch: BatchFolder) -> str:
    return f"Slurm job {batch.job_name} of {', '.join(sorted(_experiments(batch)))}"


def _environment(name: str) -> str:
    return f"environment {name[:8]}, which no trial uses"
