"""A storage that this machine has mounted, as its jobs have."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.backends.services.package import new_name
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import BackendUnavailableError


class MountedStorage:
    """A storage that this machine has mounted.

    Args:
        here: Its path on this machine.
        there: The path in jobs, for messages.
        folder: The name of ours in it.

    Attributes:
        path: That folder.
    """

    look_again_s = 0.05

    def __init__(self, here: str, there: str, folder: str) -> None:
        self._mount = Path(here).expanduser()
        self._there = there
        self.path = self._mount / folder

    def check(self, timer: StepTimer) -> CheckStep:
        """Return the step that says whether this machine can write there."""
        timer.begin("storage")
        if not os.access(self._mount, os.W_OK):
            return timer.failed(
                f"{self._mount} is not there, or cannot be written",
                f"Mount the storage there, which jobs see as {self._there}, or correct `local_path:` of the profile.",
            )
        return timer.done(f"{self._mount} is what jobs see as {self._there}")

    def has(self, path: str) -> bool:
        """Return whether something lies there."""
        return (self.path / path).exists()

    def write(self, path: str, content: bytes) -> None:
        """Write a file in one step."""
        wire.write_atomically(str(self.path / path), content, sync=False)

    def write_folder(self, path: str, content: Mapping[str, bytes]) -> None:
        """Write a folder of files in one step."""
        target = self.path / path
        draft = target.parent / new_name(".draft")
        files.make_directories(draft)
        for name, data in content.items():
            wire.write_atomically(str(draft / name), data)
        try:
            draft.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(draft)
            if not target.is_dir():
                raise

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        files.make_directories(self.path / path)

    def names(self, path: str) -> list[str]:
        """Return what a folder holds, but for files that are being written."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found = sorted(one.name for one in (self.path / path).iterdir())
            return [name for name in found if not name.startswith(".") and not name.endswith(wire.DRAFT)]
        return []

    def remove(self, path: str) -> bool:
        """Remove a file."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / path).unlink()
            return True
        return False

    def take(self, path: str) -> bytes | None:
        """Return a file and remove it."""
        try:
            content = (self.path / path).read_bytes()
        except FileNotFoundError:
            return None
        (self.path / path).unlink()
        return content

    def sizes(self, path: str) -> Mapping[str, int]:
        """Return the bytes of all files below a folder."""
        if not self._mount.is_dir():
            raise BackendUnavailableError(f"{self._mount} is not there.", "", "Mount the storage.")
        found = {}
        folder = self.path / path
        for file in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # a job removes it meanwhile
                if not file.is_dir():
                    found[str(file.relative_to(folder))] = file.lstat().st_size
        return found

    def remove_folder(self, path: str) -> None:
        """Remove a folder."""
        shutil.rmtree(self.path / path, ignore_errors=True)

    def read(self, path: str, most_bytes: int | None = None) -> bytes | None:
        """Return the end of a file, or all of it for None; None where there is none."""
        try:
            with (self.path / path).open("rb") as file:
                begin = 0 if most_bytes is None else max(0, file.seek(0, os.SEEK_END) - most_bytes)
                file.seek(begin)
                data = file.read()
        except FileNotFoundError:
            if not self.path.is_dir():  # it is not mounted
                raise
            return None
        return data.partition(b"\n")[2] if begin else data
