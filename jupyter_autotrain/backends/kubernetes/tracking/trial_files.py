"""The files of a trial: what has been collected is read here, the rest in its pod while that lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.tracking.job_tracking import JobTracker
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.backend import Chunk, Cursor
from jupyter_autotrain.errors import BackendError

_PIECE_BYTES = 4 << 20


def read(job: TrackedJob, cursor: Cursor) -> Chunk:
    """What has come of a stream; of one that a trial has for each rank, on the node of that rank."""
    rank = cursor.stream.partition("-")[2]
    workers = cast("int", cursor.ref.data.get("workers") or 1)
    node = int(rank) // workers if rank.isdigit() else 0
    directory = job.collected.node(node).directory
    try:
        return Chunk(cursor, files.read(directory, cursor.stream, trial_directory.MOST_BYTES, cursor.offset))
    except OSError as error:
        fault = "" if files.is_absent(error) else f"its {cursor.stream} cannot be read: {error.strerror}"
        return Chunk(cursor, b"", fault)


class TrialFiles:
    """Files of trials in one namespace.

    Args:
        tracker: What is known of the trials.
    """

    def __init__(self, tracker: JobTracker) -> None:
        self._api = tracker.api
        self._tracker = tracker

    def put(self, job: TrackedJob, path: str, data: bytes) -> None:
        """Write a file, in all running pods of a trial; in what is collected where it has ended."""
        target = _inside(job.collected.directory, path)
        if job.final is not None:
            trial_directory.make_directories(target.parent)
            wire.write_atomically(str(target), data)
            return
        pods = self._tracker.view.running_pods(job)
        if not pods:
            raise BackendError(f"{path} cannot be written for job {job.ref.job_id}: no pod of it runs.")
        for pod in pods:
            self._api.loop.call(exec_command.put(self._api, self._tracker.view.address(job, pod), path, data))

    def sizes(self, job: TrackedJob, path: str) -> dict[str, int]:
        """The bytes of all files below a folder."""
        found = self._all_sizes(job)
        prefix = "" if path == "." else f"{path}/"
        below = {name[len(prefix) :]: size for name, size in found.items() if name.startswith(prefix)}
        if not below and path not in wire.FOLDERS:
            raise BackendError(f"Job {job.ref.job_id} has no folder {path!r}.")
        return below

    def _all_sizes(self, job: TrackedJob) -> dict[str, int]:
        at = self._running(job)
        if job.final is None and at is not None:
            return self._api.loop.call(exec_command.sizes(self._api, at))
        directory = job.collected.directory
        here = {}
        for name, _ in files.walk(str(directory)) if directory.is_dir() else ():
            if (directory / name).is_file():
                here[name] = (directory / name).lstat().st_size
        return {**{path: size for path, _, size in job.collected.nodes[0].missing()}, **here}

    def _running(self, job: TrackedJob) -> PodAddress | None:
        """The pod of the first node, while it runs."""
        for pod in self._tracker.view.running_pods(job):
            follower = self._tracker.follower_of(job, pod)
            if follower is not None and follower.node is job.collected.nodes[0]:
                return self._tracker.view.address(job, pod)
        return None

    def fetch(self, job: TrackedJob, path: str, target: str) -> None:
        """Copy a file or a folder.

        Raises:
            BackendError: There is none, or it was not kept.
        """
        found = self._all_sizes(job)
        if path in found:
            self._fetch_file(job, path, found[path], Path(target))
            return
        prefix = "" if path == "." else f"{path}/"
        below = [name for name in found if name.startswith(prefix)]
        if not below and path not in wire.FOLDERS:
            raise BackendError(
                f"{path} of job {job.ref.job_id} cannot be fetched: there is no such file.", "",
                "See what is there: `%autotrain pull`.",
            )  # fmt: skip
        trial_directory.make_directories(Path(target))
        for name in below:
            self._fetch_file(job, name, found[name], Path(target) / name[len(prefix) :])

    def _fetch_file(self, job: TrackedJob, path: str, size: int, target: Path) -> None:
        trial_directory.make_directories(target.parent)
        at = self._running(job) if job.final is None else None
        if at is None and not (job.collected.directory / path).exists():
            raise BackendError(
                f"{path} of job {job.ref.job_id} was not collected: its pod has ended.", "",
                "Raise `fetch_limit:` of the header, or name `storage:` in the profile.",
            )  # fmt: skip
        with open(target, "wb", opener=files.private_opener) as file:
            for offset in range(0, size, _PIECE_BYTES):
                end = min(offset + _PIECE_BYTES, size)
                if at is None:
                    file.write(files.read(job.collected.directory, path, end - offset, offset))
                else:
                    file.write(self._api.loop.call(exec_command.read(self._api, at, path, offset, end)))


def _inside(folder: Path, path: str) -> Path:
    target = Path(os.path.normpath(folder / path))
    if not target.is_relative_to(folder) or target == folder:
        raise BackendError(f"There is no place for {path!r}.", "A path inside the trial directory.")
    return target
