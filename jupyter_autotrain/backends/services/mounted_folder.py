"""A shared folder in a storage that this machine has mounted, as its jobs have."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import service_job
from jupyter_autotrain.backends.services.package import TrialPackage, new_name
from jupyter_autotrain.backends.services.shared_folder import ROOT, SharedFolder
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import BackendUnavailableError

_TAIL_BYTES = 256 << 10


class MountedStorage:
    """A storage that this machine has mounted.

    Args:
        here: The path of the folder on this machine.
        there: The path in jobs, for messages.

    Attributes:
        path: The folder of ours in it.
    """

    look_again_s = 0.05

    def __init__(self, here: str, there: str) -> None:
        self._mount = Path(here).expanduser()
        self._there = there
        self.path = self._mount / ROOT

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

    def read(self, path: str, most_bytes: int | None) -> bytes | None:
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


class MountedFolder(SharedFolder):
    """A shared folder in a mounted storage; the logs of jobs may lie there, too.

    ```
    jobs/NAME/begun         once a job has begun the trial; with several nodes, `job` in it says which one
              log           what that job prints
              node-N/log    what one of several nodes prints
    ```

    Args:
        storage: The options of the storage: its path here and in jobs.
    """

    def __init__(self, storage: JsonObject) -> None:
        there = str(storage.get("mount_path") or "").rstrip("/")
        self.mounted = MountedStorage(str(storage.get("local_path") or ""), there)
        super().__init__(self.mounted, f"{there}/{ROOT}")

    def recorded_command(self, package: TrialPackage, variables: Mapping[str, str]) -> str:
        """Return a command as `command`, whose output becomes the log in this folder.

        A second job of the same trial, as after a submit whose answer was lost, fails at once and changes nothing.

        Args:
            package: The trial.
            variables: Those of `Service`; each job has another first address.
        """
        if package.nodes == 1:
            return f"{self.claim(package)} && {self.logged_command(package, variables)}"
        begun = f"{self.there}/jobs/{package.name}/{service_job.BEGUN}"
        rank = f"${variables['rank']}"
        job = f'"${variables["first_address"]}"'
        claim = f"{self.claim(package)} && echo {job} >{begun}/job"
        is_same = f'until [ -s {begun}/job ]; do sleep 1; done; [ "$(cat {begun}/job)" = {job} ]'
        return f"if [ {rank} = 0 ]; then {claim}; else {is_same}; fi && {self.logged_command(package, variables)}"

    def claim(self, package: TrialPackage) -> str:
        """Return the command that goes well for one job of a trial alone."""
        return f"mkdir {self.there}/jobs/{package.name}/{service_job.BEGUN}"

    def logged_command(self, package: TrialPackage, variables: Mapping[str, str]) -> str:
        """Return a command as `command`, whose output becomes the log of its node in this folder."""
        node = f"/node-${variables['rank']}" if package.nodes > 1 else ""
        log = f"{self.there}/jobs/{package.name}{node}/{service_job.LOG}"
        return f"{self.command(package, package.run_folder(variables))} >{log} 2>&1"

    def has_begun(self, name: str) -> bool:
        """Return whether a job has begun a recorded command."""
        return self.mounted.has(f"jobs/{name}/{service_job.BEGUN}")

    def log(self, ref: JobRef, lines: int | None, node: int) -> str:
        """Return the log of a node's recorded command; its end alone, unless `lines` is None.

        Raises:
            BackendUnavailableError: The storage is not there, or cannot be read.
        """
        try:
            path = f"{self.own(ref, node)}/{service_job.LOG}"
            data = self.mounted.read(path, None if lines is None else _TAIL_BYTES)
        except OSError as error:
            raise BackendUnavailableError(
                f"{error.filename or 'The storage'} cannot be read: {error.strerror}.", "", "Look at the mount."
            ) from error
        return (data or b"").decode(errors="replace")
