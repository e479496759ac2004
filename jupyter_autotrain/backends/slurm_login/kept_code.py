"""The code of trials on a cluster, kept while an experiment there needs it: Slurm begins a job whenever it likes.

```
ROOT/kept_bundles/DIGEST                 the code of an experiment, or of several with the same
ROOT/kept_users/DIGEST/HOME~EXPERIMENT   an empty file: a trial of that experiment has that code
ROOT/blobs/SHA256                        a file of it, as it was received; the folder is locked while files are
```

An experiment needs it while `ROOT/jobs/HOME` has a trial directory of it. Runs on the login node.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from jupyter_autotrain.backends.slurm_login import submit_lock
from jupyter_autotrain.backends.slurm_login.batch import Task

FOLDER = "kept_bundles"
_USERS = "kept_users"
_REMOVED = ".removed-"
_BLOCK_BYTES = 1 << 20


def use(root: Path, tasks: Sequence[Task]) -> bool:
    """Note that these trials have their code, while the submit lock is held; False where some of it is gone.

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
    """Remove the code that no experiment of any home needs; while some is received, that is for the next call.

    Args:
        root: The folder of everything of ours, of all homes.

    Raises:
        OSError: It cannot be removed.
    """
    with submit_lock.held(root), _receivers_out(root / "blobs") as are_out:
        if not are_out:
            return
        for rest in (root / FOLDER).glob(f"*{_REMOVED}*"):
            shutil.rmtree(rest, ignore_errors=True)
        there = {_user(directory) for directory in root.glob("jobs/*/*")}
        for users in root.glob(f"{_USERS}/*"):
            if there.isdisjoint(path.name for path in users.iterdir()):
                _remove(root / FOLDER / users.name, root / "blobs")
                shutil.rmtree(users)


def _user(directory: Path) -> str:
    """The experiment of a trial directory, with its home."""
    return f"{directory.parent.name}~{directory.name.rsplit('-', 2)[0]}"


@contextlib.contextmanager
def _receivers_out(blobs: Path) -> Iterator[bool]:
    """Keep out who receives files; False where one does just now. Where none were ever received there is nobody."""
    if not blobs.is_dir():
        yield True
        return
    fd = os.open(blobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _is_locked(fd)
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # where nothing can be locked nothing is removed
        return False
    return True


def _remove(folder: Path, blobs: Path) -> None:
    """A folder is never there in part; with it goes what was received for it, which comes again where it is needed."""
    removed = folder.with_name(f"{folder.name}{_REMOVED}{os.getpid()}")
    try:
        folder.rename(removed)
    except FileNotFoundError:
        return
    for path in removed.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.parent.name != "__pycache__":
            (blobs / _digest(path)).unlink(missing_ok=True)
    shutil.rmtree(removed, ignore_errors=True)


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
            total.update(block)
    return total.hexdigest()
