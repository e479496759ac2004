"""Bringing files of a trial here from its host."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, cast

from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.errors import BackendError

PART = ".part"
_LARGE_BYTES: Final = 1 << 20  # larger files come on a channel of their own


def fetch(link: HostLink, job: str, path: str, target: Path) -> None:
    """Copy a file or a folder; in a folder, what is no regular file is left out.

    Raises:
        BackendError: There is nothing, the host cannot be reached, or the target cannot be written.
    """
    found = link.ask("list", job=job, path=path)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not isinstance(found, Mapping):
            _fetch_file(link, job, path, cast("int", found), target)
            return
        target.mkdir(mode=0o700, exist_ok=True)
        for name, size in found.items():
            goal = _inside(target, name)
            if size == -1:
                goal.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                _fetch_file(link, job, os.path.normpath(f"{path}/{name}"), cast("int", size), goal)
    except OSError as error:
        raise BackendError(f"{path} of job {job} cannot be written to {target}: {error.strerror}.") from error


def sizes(link: HostLink, job: str, path: str) -> dict[str, int]:
    """The bytes of all regular files below a folder; errors as `fetch`."""
    found = link.ask("list", job=job, path=path)
    if not isinstance(found, Mapping):
        raise BackendError(f"{path} of job {job} is no folder.")
    known = {name: cast("int", size) for name, size in found.items() if size != -1}
    for name in known:
        _inside(Path("/folder"), name)
    return known


def _inside(target: Path, name: str) -> Path:
    goal = Path(os.path.normpath(target / name))
    if target not in goal.parents:
        raise BackendError(f"The host names a file outside of the folder: {name!r}.")
    return goal


def _fetch_file(link: HostLink, job: str, path: str, size_bytes: int, goal: Path) -> None:
    """Copy a file; what was cut goes on where it ended, since files of an ended trial do not change."""
    part = goal.with_name(f"{goal.name}{PART}")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as file:
        if size_bytes > _LARGE_BYTES:
            link.receive_file(job, path, file)
        else:
            _ask_for(link, job, path, size_bytes, file)
    part.replace(goal)


def _ask_for(link: HostLink, job: str, path: str, size_bytes: int, file: IO[bytes]) -> None:
    """Complete a small file by the agent's answers; what a file has grown by meanwhile is left there."""
    offset = file.seek(0, os.SEEK_END)
    while offset < size_bytes:
        data = base64.b64decode(cast("str", link.ask("get", job=job, path=path, offset=offset)))
        if not data:
            return
        offset += file.write(data)
