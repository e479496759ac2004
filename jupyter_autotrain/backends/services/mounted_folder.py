"""A shared folder in a storage that this machine has mounted, as its jobs have."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import service_job
from jupyter_autotrain.backends.services.mounted_storage import MountedStorage
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.pools import Pool
from jupyter_autotrain.backends.services.shared_folder import ROOT, SharedFolder
from jupyter_autotrain.backends.services.shared_trials import SharedTrials
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import BackendUnavailableError

_TAIL_BYTES = 256 << 10


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
        self.mounted = MountedStorage(str(storage.get("local_path") or ""), there, ROOT)
        super().__init__(self.mounted, f"{there}/{ROOT}")

    def pool(self, name: str) -> Pool:
        """Return the pool of a name, whose trials pilots take by themselves."""
        return SharedTrials(self.mounted, name)

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
