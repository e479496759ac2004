"""The state of a trial, by its status file and by Slurm's word on its job. Runs on the login node.

The status file goes first. Slurm is asked where that says nothing of the end, or where Slurm may have caused the end.
A trial is ended from here only when Slurm says that its job has ended, or when Slurm answers, does not know the job
any more, and no supervisor holds the trial's lock.

All nodes of a trial but the first have a directory inside the trial directory; the streams of their ranks are links to
those in the trial directory.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jupyter_autotrain.agent.slurm import job_states
from jupyter_autotrain.agent.slurm.batch import BatchFolder, Entry
from jupyter_autotrain.agent.slurm.job_states import Ending, SlurmJob
from jupyter_autotrain.agent.slurm.slurm_task import NODES
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import termination_causes, trial_lock
from jupyter_autotrain.agent.trial.status import Status, UnknownError

_EXPLAINED = "slurm_state"
_FORGOTTEN = "Slurm does not know its job any more"
_FORGOTTEN_FACTOR = 6.0  # how many times longer a job that Slurm does not know is waited for
_NOBODY: list[float | str] = [0, 0.0, ""]
_BY_SLURM = frozenset({int(signal.SIGTERM), int(signal.SIGKILL), int(signal.SIGCONT)})


def directories(directory: Path) -> list[Path]:
    """Return the directories of all nodes but the first, in their order."""
    with contextlib.suppress(OSError):
        return sorted((directory / NODES).iterdir(), key=lambda path: path.name.zfill(6))
    return []


def have_ended(directory: Path) -> bool:
    """Tell whether the supervisors of all other nodes have written their ends, so that their statuses are complete."""
    for path in directories(directory):
        try:
            status = statuses.read(path)
        except UnknownError:
            return False
        if status is None or not statuses.is_final(status):
            return False
    return True


def first_failure(directory: Path, status: Status) -> Status:
    """Return the status of a trial with the failure that ended it.

    Where its first node was only ended, the failure is that of the node that failed first. It is lost where no node has
    told of one: that which has failed could not.
    """
    is_consequence = termination_causes.ended_for_another(status)
    if status["state"] not in {"PREEMPTED", "FAILED", "LOST"} and not is_consequence:
        return status
    nodes = [status, *_others(directory)]
    number = termination_causes.first_cause(nodes, _CAUSES, lambda one: termination_causes.failed_s(nodes[one]))
    if number is None:
        return {**status, **_lost(statuses.reason(status).removeprefix(termination_causes.ENDED_BECAUSE))}
    told = ("state", "reason", "traceback", "cell_line", "kind", "exit_code", "signal")
    return {**status, **{name: nodes[number][name] for name in told if name in nodes[number]}}


def _lost(why: str) -> Status:
    return {"state": "LOST", "reason": f"Lost: {why} `%autotrain retry` goes on from its last checkpoint."}


def _others(directory: Path) -> list[Status]:
    """Return the statuses of all nodes but the first, as far as they can be read; one that tells no end is lost."""
    found = []
    for path in directories(directory):
        with contextlib.suppress(UnknownError):
            status = statuses.read(path)
            if status is not None:
                found.append(status if statuses.is_final(status) else _lost(f"node {path.name}: it is lost."))
    return found


def _failed_by_itself(status: Mapping[str, object]) -> bool:
    """Tell whether a node failed, but by no signal of Slurm's.

    Slurm ends a job as soon as one of its tasks was killed. Its signal can reach ranks of the other nodes before their
    supervisors hear of the loss, so that these tell a failure of their own.
    """
    return status["state"] == "FAILED" and status.get("signal") != signal.SIGTERM


_CAUSES: Sequence[Callable[[Mapping[str, object]], bool]] = (
    _failed_by_itself,
    lambda status: status["state"] == "LOST",
    lambda status: status["state"] == "FAILED",
    lambda status: status["state"] not in {"SUCCEEDED", "EARLY_STOPPED"},
)


def preparing(reason: str) -> Status:
    """Return the status of a trial that has not begun, with the rest of a sentence that begins with the trial."""
    return {"state": str(TrialState.PREPARING), "reason": reason}


def needs_slurm(directory: Path, status: Status) -> bool:
    """Tell whether Slurm has to be asked about a trial.

    Slurm need not be asked where the trial ended by itself, or by our own cancel, on all of its nodes.
    """
    state = TrialState(str(status["state"]))
    if not state.is_final:
        return True
    if _EXPLAINED in status:
        return False
    if not have_ended(directory):
        return True
    if termination_causes.ended_for_another(status):
        return True
    may_be_by_others = status.get("signal") in _BY_SLURM or bool(directories(directory))
    return state is TrialState.PREEMPTED or (state is TrialState.FAILED and may_be_by_others)


class Resolution:
    """The state of trials, from a status file and Slurm's word.

    Args:
        root: The folder of everything of ours.
        settle_s: How long after the end of a job its last files may take to appear.
    """

    def __init__(self, root: Path, settle_s: float) -> None:
        self._root = root
        self._settle_s = settle_s
        self._since_s: dict[Path, float] = {}  # when a job was first seen to be over; a fresh instance waits again

    def resolve(self, directory: Path, entry: Entry, status: Status | None, job: SlurmJob | None) -> Status | str:
        """Return the status, or a text: the reason why it is not known."""
        if job is not None and not job.has_ended:
            return self._resolve_active(directory, status, job)
        if status is not None and statuses.is_final(status):
            return self.explain(directory, status, job)
        if not self.has_settled(directory, 1.0 if job is not None else _FORGOTTEN_FACTOR):
            return _FORGOTTEN if job is None else "its job has ended, and its last files are awaited"
        if job is None and trial_lock.is_held(str(directory)):
            return f"{_FORGOTTEN}, but its supervisor lives"
        return self._end_without_status(directory, entry, job)

    def _end_without_status(self, directory: Path, entry: Entry, job: SlurmJob | None) -> Status:
        folder = BatchFolder(self._root, str(entry["batch"]))
        return self.end(directory, entry, job, folder.last_output(int(entry["index"])))

    def _resolve_active(self, directory: Path, status: Status | None, job: SlurmJob) -> Status:
        if status is not None and job.is_completing and _is_told(directory, status):
            return self.explain(directory, status, None)
        self._since_s.pop(directory, None)
        return _of_active(status, job)

    def has_settled(self, directory: Path, factor: float = 1.0) -> bool:
        """Tell whether the job of a trial has been over for long enough that all of its files are here."""
        now_s = time.monotonic()
        return now_s - self._since_s.setdefault(directory, now_s) >= factor * self._settle_s

    def explain(self, directory: Path, status: Status, job: SlurmJob | None) -> Status:
        """Add the cause to the end that the supervisor has written, where Slurm caused it."""
        ending = None if job is None else job_states.ending_of(job)
        status = first_failure(directory, status)
        changes: Status = {_EXPLAINED: "" if job is None else job.state}
        if ending is not None:
            changes.update({"state": ending.state, "reason": ending.reason})
        return self._write(directory, {**status, **changes})

    def end(self, directory: Path, entry: Entry, job: SlurmJob | None, output: str) -> Status:
        """Write the end of a trial of which nothing is left, and that has written none.

        `output` is the last line of its job.
        """
        BatchFolder(self._root, str(entry["batch"])).forget_secrets(int(entry["index"]))
        found: Status = {"supervisor": _NOBODY}
        with contextlib.suppress(statuses.UnknownError):
            found = statuses.read(directory) or found
        by_itself = _killed(job) if job is not None and "state" in found else _without_words(job, output)
        ending = (job and job_states.ending_of(job)) or by_itself
        changes: Status = {
            "state": ending.state, "reason": ending.reason, "ended_s": time.time(), "groups": [],
            _EXPLAINED: job.state if job else "unknown",
        }  # fmt: skip
        ended = {**found, **changes}
        is_by_slurm = job is not None and job_states.ending_of(job) is not None
        return self._write(directory, ended if is_by_slurm else first_failure(directory, ended))

    def _write(self, directory: Path, status: Status) -> Status:
        self._since_s.pop(directory, None)
        with contextlib.suppress(OSError):  # a full disk: the next look settles it again
            statuses.write(directory, status)
        return status


def _is_told(directory: Path, status: Status) -> bool:
    """Tell whether all nodes have told their ends and the trial ended by itself; Slurm may clean up for minutes."""
    if not statuses.is_final(status) or not have_ended(directory):
        return False
    told = first_failure(directory, status)
    return told["state"] not in {"PREEMPTED", "LOST"} and told.get("signal") not in _BY_SLURM


def _of_active(status: Status | None, job: SlurmJob) -> Status:
    """Return the status of a trial whose job waits or runs: whatever its file says, the trial has not ended."""
    if job.is_waiting:
        return preparing(job_states.waiting_sentence(job))
    if status is None:
        return preparing(job_states.running_sentence(job) or f"is being started by Slurm on {job.nodes} (job {job.id})")
    if statuses.is_final(status):
        return {**status, "state": str(TrialState.RUNNING), "reason": "is ending in Slurm"}
    return {**status, "reason": job_states.running_sentence(job)}


def _killed(job: SlurmJob) -> Ending:
    """Return the ending of a job whose supervisor had begun, and was killed."""
    why = (
        f"its supervisor was killed from outside while the trial ran (Slurm job {job.id} on {job.nodes or 'its node'})"
    )
    return Ending("LOST", f"Lost: {why}. `%autotrain retry` goes on from its last checkpoint.")


def _without_words(job: SlurmJob | None, output: str) -> Ending:
    """Return the ending of a job that ended by itself without a status.

    Its interpreter did not come up, or it was killed.
    """
    if job is None:
        why = "Slurm does not know its job any more, no process of it holds its lock, and it has written no end"
        return Ending("LOST", f"Lost: {why}. `%autotrain retry` goes on from its last checkpoint.")
    if job.state == "COMPLETED" and not output:
        why = f"Slurm job {job.id} has ended on {job.nodes}, and the trial has written no end"
        return Ending("LOST", f"Lost: {why}. The nodes must share the folder of the trial (`workdir`).")
    said = f"its script printed last: {output}" if output else "its script printed nothing"
    advice = "Check `python`, `setup` and `workdir` among the options of the backend."
    return Ending("FAILED", f"Slurm job {job.id} ended on {job.nodes or 'its node'} without a result; {said}. {advice}")
