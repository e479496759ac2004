"""The leftovers of a home on a cluster: trials that no experiment needs, environments that no trial uses.

Slurm begins a job whenever it likes, so the code of trials is kept while an experiment there needs it.

```
ROOT/kept_bundles/DIGEST                 the code of an experiment, or of several with the same
ROOT/kept_users/DIGEST/HOME~EXPERIMENT   an empty file: a trial of that experiment has that code
ROOT/blobs/SHA256                        a file of it, as it was received; the folder is locked while files are
```

An experiment needs it while `ROOT/jobs/HOME` has a trial directory of it. Runs on the login node.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from jupyter_autotrain.agent import caches, locks
from jupyter_autotrain.agent.environments import eviction
from jupyter_autotrain.agent.objects import received_files
from jupyter_autotrain.agent.slurm.batch import BatchFolder, Task, submitting
from jupyter_autotrain.agent.slurm.job_queue import JobQueue

_GRACE_S = 5.0
_YOUNG_S = 60.0  # a younger batch may be of an experiment that came after it was looked which ones need theirs
_OF_OURS = "autotrain-"
FOLDER = "kept_bundles"
_USERS = "kept_users"


class Leftovers:
    """The leftovers of a home, to be found or removed.

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
        """Return the leftovers of one home that belong to none of these experiments.

        Args:
            folder: Where the trial directories of that home lie.
            experiments: Ids of the experiments that may still need what is theirs.
        """
        found = list(map(_told, self._batches(folder, experiments)))
        return found + list(map(_environment, self._environments()))

    def remove(self, folder: Path, experiments: Collection[str]) -> list[str]:
        """Remove all that `find` finds; return what was removed."""
        removed = []
        for batch in list(self._batches(folder, experiments)):
            removed.append(_told(batch))
            for directory in batch.directories():
                self._cancel(directory, _GRACE_S)
            batch.remove()
        root = str(self._root / "environments")
        gone = [name for name in self._environments() if eviction.remove(root, name)]
        return removed + list(map(_environment, gone))

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
        """Return the environments that no trial uses, and none while there are jobs.

        The file system that nodes share may not show here which ones they have locked.
        """
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


def use(root: Path, tasks: Sequence[Task]) -> bool:
    """Note that these trials have their code, while the submit lock is held; return False where some of it is gone.

    Raises:
        OSError: It cannot be noted.
    """
    found = {(Path(task["trial"]["bundle"]), _user(Path(task["directory"]))) for task in tasks}
    for code, user in found:
        if code.parent.name == FOLDER:  # else it is the home's own
            users = root / _USERS / code.name
            users.mkdir(mode=0o700, parents=True, exist_ok=True)
            (users / user).touch(mode=0o600)
    return all(code.is_dir() for code, _ in found)


def remove_unneeded(root: Path) -> None:
    """Remove the code that no experiment of any home needs.

    While some code is received nothing is removed: that is for the next call.

    Args:
        root: The folder of everything of ours, of all homes.

    Raises:
        OSError: It cannot be removed.
    """
    (root / "blobs").mkdir(mode=0o700, parents=True, exist_ok=True)
    with submitting(root), locks.unused(root / "blobs") as is_free:
        if not is_free:  # something is received
            return
        caches.remove_rests(str(root / FOLDER))
        there = set(map(_user, root.glob("jobs/*/*")))
        for users in root.glob(f"{_USERS}/*"):
            if there.isdisjoint(path.name for path in users.iterdir()):
                _remove(root / FOLDER / users.name, root / "blobs")
                shutil.rmtree(users)


def _user(directory: Path) -> str:
    """Return the experiment of a trial directory, with its home."""
    return f"{directory.parent.name}~{directory.name.rsplit('-', 2)[0]}"


def _remove(folder: Path, blobs: Path) -> None:
    """Remove a folder, and the files that were received for it; these come again where they are needed."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.parent.name != "__pycache__":
            (blobs / received_files.digest(path)).unlink(missing_ok=True)
    caches.remove(str(folder))
