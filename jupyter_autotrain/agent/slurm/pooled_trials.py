"""Trials that pilot jobs run: their states, and their ends. Runs on the login node.

A trial waits, or a pilot has it, or it has ended by itself. One that a pilot took and did not begin waits again when
Slurm has ended that pilot: its secrets are still there, and it has no status, so no code of it has run.
"""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.agent.slurm.batch import BatchFolder, Entry
from jupyter_autotrain.agent.slurm.job_queue import JobQueue
from jupyter_autotrain.agent.slurm.pilots import Pilot, Pools
from jupyter_autotrain.agent.slurm.resolution import Resolution, preparing
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock
from jupyter_autotrain.agent.trial.status import Status

_AGAIN = "waits for another pilot job: the one that took it was ended before it could begin"


class PooledTrials:
    """The states of the trials of pools.

    Args:
        root: The folder of everything of ours.
        pools: The pools there.
        queue: Lists jobs.
        resolution: Brings a status file and Slurm's word together.
    """

    def __init__(self, root: Path, pools: Pools, queue: JobQueue, resolution: Resolution) -> None:
        self._root = root
        self._pools = pools
        self._queue = queue
        self._resolution = resolution

    def resolve(self, directory: Path, status: Status | None, entry: Entry) -> Status | str:
        """Return the status of a trial, or a text: the reason why it is not known.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        if self._pools.is_waiting(entry):
            return self._of_waiting(directory, entry)
        pilot = self._pools.pilot_of(entry)
        if pilot is None:
            status = statuses.read(directory)  # an older one may be from before its end
            if status is not None and statuses.is_final(status):
                return self._resolution.explain(directory, status, None)
        job = None if pilot is None else self._queue.find(pilot.job)
        if job is not None and not job.has_ended:
            return self._resolution.resolve(directory, entry, status, job)
        if status is None and self._begins_again(directory, entry, pilot):
            return preparing(_AGAIN)
        return self._resolution.resolve(directory, entry, status, job)

    def _of_waiting(self, directory: Path, entry: Entry) -> Status | str:
        pool = str(entry["pool"])
        failed = self._pools.failed(pool)
        if failed is None or not self._pools.withdraw(entry):
            return preparing(self._pools.reason(pool))
        job = self._queue.find(failed.job)
        return self._resolution.end(directory, entry, job, failed.last_output())

    def _begins_again(self, directory: Path, entry: Entry, pilot: Pilot | None) -> bool:
        """Put a trial back that has not begun, and cannot begin any more where it is; return whether that was so."""
        if not self._resolution.has_settled(directory):
            return False
        if trial_lock.is_held(str(directory)) or (pilot is not None and trial_lock.is_held(str(pilot.path))):
            return False
        folder = BatchFolder(self._root, str(entry["batch"]))
        if not folder.has_secrets(int(entry["index"])):
            return False
        self._pools.put_back(entry, pilot)
        return True
