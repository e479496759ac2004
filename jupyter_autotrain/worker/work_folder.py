"""The folder `work/` that a cell runs in, with the shipped files in it."""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from jupyter_autotrain.core import wire


def enter_work(directory: str, bundle: str) -> None:
    """Go to `work/`, where the shipped files are linked in, and import from there first."""
    work = f"{directory}/{wire.WORK}"
    os.makedirs(work, mode=0o700, exist_ok=True)
    _link(f"{bundle}/files", work, f"{directory}/{wire.CONTROL}/shipped.{os.urandom(6).hex()}.draft")
    os.chdir(work)
    sys.path.insert(0, work)


def _link(source: str, target: str, draft: str) -> None:
    """Mirror a folder: real folders, so that a trial can write into them, links to files, and copies of some.

    The bundle keeps files read-only that the cell only reads; another trial of it must not find the others changed.
    Copies are made as `draft`, outside of the folder: another worker's cell may be looking into it.
    """
    if not os.path.isdir(source):
        return
    for entry in os.scandir(source):
        there = f"{target}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(there, mode=0o700, exist_ok=True)
            _link(entry.path, there, draft)
        elif os.path.lexists(there):
            continue
        elif entry.stat().st_mode & stat.S_IWUSR:
            _copy(entry.path, there, draft)
        else:
            with contextlib.suppress(FileExistsError):  # another worker of the trial has made it
                os.symlink(entry.path, there)


def _copy(source: str, target: str, draft: str) -> None:
    """Copy a file, its time too, unless another worker of the trial has done so."""
    import shutil  # noqa: PLC0415 - only trials that write to shipped files pay

    shutil.copy2(source, draft)
    with contextlib.suppress(FileExistsError):
        os.link(draft, target)
    os.unlink(draft)
