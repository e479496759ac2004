"""The files of a trial: what has been collected is read here, the rest in its pod while that lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from jupyter_autotrain.agent.service import trial_files
from jupyter_autotrain.backends.directories import listing_below, sizes, write_pieces
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.local.trial_directory import LocalDirectory
from jupyter_autotrain.errors import BackendError

_PIECE_BYTES = 4 << 20


class PodDirectory:
    """The directory of a trial: in its pods while they run, in what was collected else.

    Args:
        tracker: What is known of the trials of the namespace.
        job: The trial.
    """

    def __init__(self, tracker: JobTracker, job: TrackedJob) -> None:
        self._api = tracker.api
        self._tracker = tracker
        self._job = job
        self._collected = LocalDirectory(job.collected.directory)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, in all running pods of the trial; in what is collected where it has ended."""
        job = self._job
        trial_files.inside(self._collected.path, path)
        if job.final is not None:
            self._collected.put(path, data)
            return
        pods = self._tracker.view.running_pods(job)
        if not pods:
            raise BackendError(f"{path} cannot be written for job {job.ref.job_id}: no pod of it runs.")
        for pod in pods:
            self._api.loop.call(exec_command.put(self._api, self._tracker.view.address(job, pod), path, data))

    def listing(self, path: str) -> Mapping[str, int] | int:
        """Return the size of a file, or the sizes of all below a folder."""
        return listing_below(self._all_sizes(), path, self._job.ref.job_id)

    def _all_sizes(self) -> dict[str, int]:
        at = self.running_at()
        if self._job.final is None and at is not None:
            return self._api.loop.call(exec_command.sizes(self._api, at))
        missing = {path: size for path, _, size in self._job.collected.nodes[0].missing()}
        if not self._collected.path.is_dir():
            return missing
        return {**missing, **sizes(self._collected, ".")}

    def running_at(self) -> PodAddress | None:
        """Return the pod of the first node; None where it does not run, or is not known yet."""
        job = self._job
        for pod in self._tracker.view.running_pods(job):
            follower = self._tracker.follower_of(job, pod)
            if follower is not None and follower.node is job.collected.nodes[0]:
                return self._tracker.view.address(job, pod)
        return None

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:
        """Read a file, in pieces where it is in its pod.

        Raises:
            BackendError: It was not collected.
        """
        at = self.running_at() if self._job.final is None else None
        if at is not None:
            write_pieces(part, size_bytes, lambda offset: self._piece(at, path, offset, size_bytes))
            return
        if not (self._collected.path / path).exists():
            raise BackendError(
                f"{path} of job {self._job.ref.job_id} was not collected: its pod has ended.", "",
                "Raise `fetch_limit:` of the header, or name `storage:` in the profile.",
            )  # fmt: skip
        self._collected.receive(path, size_bytes, part)

    def _piece(self, at: PodAddress, path: str, offset: int, size_bytes: int) -> bytes:
        end = min(offset + _PIECE_BYTES, size_bytes)
        return self._api.loop.call(exec_command.read(self._api, at, path, offset, end))
