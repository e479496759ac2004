"""How a trial stands, by its status file and by what Slurm says of its job. Runs on the login node.

The status file goes first. Slurm is asked where that says nothing of the end, or where Slurm may have caused the end.
A trial is ended from here only when Slurm says that its job has ended, or when Slurm answers, does not know the job
any more, and no supervisor holds the trial's lock.
"""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.backends.local.status import Status
from jupyter_autotrain.backends.slurm_login import job_states, node_directories
from jupyter_autotrain.backends.slurm_login.batch import BatchFolder, Entry
from jupyter_autotrain.backends.slurm_login.job_states import Ending, SlurmJob
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.worker import trial_lock

_EXPLAINED = "slurm_state"
_FORGOTTEN_FACTOR = 6.0  # how many times longer a job that Slurm does not know is waited for
_NOBODY: list[float | str] = [0, 0.0, ""]
_BY_SLURM = frozenset({int(signal.SIGTERM), int(signal.SIGKILL), int(signal.SIGCONT)})


def preparing(reason: str) -> Status:
    """The status of a trial that has not begun, with the rest of a sentence that begins with the trial."""
    return {"state": str(TrialState.PREPARING), "reason": reason}


def needs_slurm(directory: Path, status: Status) -> bool:
    """False when a status says all: the trial ended by itself, or by our own cancel, on all of its nodes."""
    state = TrialState(str(status["state"]))
    if not state.is_final:
        return True
    if _EXPLAINED in status:
        return False
    if not node_directories.have_ended(directory):
        return True
    may_be_by_others = status.get("signal") in _BY_SLURM or bool(node_directories.directories(directory))
    return state is TrialState.PREEMPTED or (state is TrialState.FAILED and may_be_by_others)


class Resolution:
    """Brings a status file and Slurm's word together.

    Args:
        root: The folder of everything of ours.
        settle_s: How long after the end of a job its last files may take to appear.
    """

    def __init__(self, root: Path, settle_s: float) -> None:
        self._root = root
        self._settle_s = settle_s
        self._since_s: dict[Path, float] = {}  # when a job was first seen to be over; a fresh instance waits again

    def resolve(self, directory: Path, entry: Entry, status: Status | None, job: SlurmJob | None) -> Status | str:
        """The status, or a text: why it is not known."""
        if job is not None and not job.has_ended:
            if status is not None and job.is_completing and _is_told(directory, status):
                return self.explain(directory, status, None)
            self._since_s.pop(directory, None)
            return _of_active(status, job)
        if status is not None and statuses.is_final(status):
            return self.explain(directory, status, job)
        if not self.has_settled(directory, 1.0 if job is not None else _FORGOTTEN_FACTOR):
            return (
                "its job has ended, and its last files are awaited" if job else "Slurm does not know its job any more"
            )
        if job is None and trial_lock.is_held(str(directory)):
            return "Slurm does not know its job any more, but its supervisor lives"
        folder = BatchFolder(self._root, str(entry["batch"]))
        return self.end(directory, entry, job, folder.last_output(int(entry["index"])))

    def has_settled(self, directory: Path, factor: float = 1.0) -> bool:
        """True when the job of a trial has been over for long enough that all of its files are here."""
        now_s = time.monotonic()
        return now_s - self._since_s.setdefault(directory, now_s) >= factor * self._settle_s

    def explain(self, directory: Path, status: Status, job: SlurmJob | None) -> Status:
        """The supervisor has written the end; where Slurm caused it, say so."""
        ending = None if job is None else job_states.ending_of(job)
        status = node_directories.first_failure(directory, status)
        changes: Status = {_EXPLAINED: "" if job is None else job.state}
        if ending is not None:
            changes.update({"state": ending.state, "reason": ending.reason})
        return self._write(directory, {**status, **changes})

    def end(self, directory: Path, entry: Entry, job: SlurmJob | None, output: str) -> Status:
        """Nothing of the trial is left, and it has written no end; `output` is the last line of its job."""
        BatchFolder(self._root, str(entry["batch"])).forget_secrets(int(entry["index"]))
        ending = (job and job_states.ending_of(job)) or _without_words(job, output)
        found: Status = {"supervisor": _NOBODY}
        with contextlib.suppress(statuses.UnknownError):
            found = statuses.read(directory) or found
        changes: Status = {
            "state": ending.state, "reason": ending.reason, "ended_s": time.time(), "groups": [],
            _EXPLAINED: job.state if job else "unknown",
        }  # fmt: skip
        ended = {**found, **changes}
        is_by_slurm = job is not None and job_states.ending_of(job) is not None
        return self._write(directory, ended if is_by_slurm else node_directories.first_failure(directory, ended))

    def _write(self, directory: Path, status: Status) -> Status:
        self._since_s.pop(directory, None)
        with contextlib.suppress(OSError):  # a full disk: the next look settles it again
            statuses.write(directory, status)
        return status


def _is_told(directory: Path, status: Status) -> bool:
    """Return whether all nodes have told their ends and the trial ended by itself; Slurm may clean up for minutes."""
    if not statuses.is_final(status) or not node_directories.have_ended(directory):
        return False
    told = node_directories.first_failure(directory, status)
    return told["state"] != "PREEMPTED" and told.get("signal") not in _BY_SLURM


def _of_active(status: Status | None, job: SlurmJob) -> Status:
    """The job waits or runs: whatever its status file says, the trial has not ended."""
    if job.is_waiting:
        return preparing(job_states.waiting_sentence(job))
    if status is None:
        return preparing(job_states.running_sentence(job) or f"is being started by Slurm on {job.nodes} (job {job.id})")
    if statuses.is_final(status):
        return {**status, "state": str(TrialState.RUNNING), "reason": "is ending in Slurm"}
    return {**status, "reason": job_states.running_sentence(job)}


def _without_words(job: SlurmJob | None, output: str) -> Ending:
    """A job that ended by itself without a status: its interpreter did not come up, or it was killed."""
    if job is None:
        why = "Slurm does not know its job any more, no process of it holds its lock, and it has written no end"
        return Ending("LOST", f"Lost: {why}. `%autotrain retry` goes on from its last checkpoint.")
    if job.state == "COMPLETED" and not output:
        why = f"Slurm job {job.id} has ended on {job.nodes}, and the trial has written no end"
        return Ending("LOST", f"Lost: {why}. The nodes must share the folder of the trial (`workdir`).")
    said = f"its script printed last: {output}" if output else "its script printed nothing"
    advice = "Check `python`, `setup` and `workdir` among the options of the backend."
    return Ending("FAILED", f"Slurm job {job.id} ended on {job.nodes or 'its node'} without a result; {said}. {advice}")
