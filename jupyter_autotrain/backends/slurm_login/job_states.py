"""What Slurm says of a job, and what that means for its trial. Runs on the login node; pure."""

from __future__ import annotations

from jupyter_autotrain.backends.slurm_login.pending_reasons import sentence_of

WAITING_STATES = frozenset({
    "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT",
})  # fmt: skip
RUNNING_STATES = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"})


class SlurmJob:
    """One job, or one task of an array, as `squeue` or `sacct` lists it.

    Args:
        id: Its number; for a task of an array ARRAY_INDEX.
        state: Its state, in Slurm's word.
        reason: Why it waits, in Slurm's word.
        nodes: Where it runs or ran.
        restarts: How often Slurm has begun it again.
    """

    def __init__(self, id: str, state: str, reason: str = "", nodes: str = "", restarts: int = 0) -> None:
        self.id = id
        self.state = state.split(" ", maxsplit=1)[0].rstrip("+")  # "CANCELLED by 1000"
        self.reason = reason
        self.nodes = nodes
        self.restarts = restarts

    @property
    def is_waiting(self) -> bool:
        """True before it runs, also before it runs again."""
        return self.state in WAITING_STATES

    @property
    def is_running(self) -> bool:
        """True while it has its nodes."""
        return self.state in RUNNING_STATES

    @property
    def is_completing(self) -> bool:
        """Return whether its tasks have ended while some node still cleans up."""
        return self.state == "COMPLETING"

    @property
    def has_ended(self) -> bool:
        """True when Slurm is done with it."""
        return not self.is_waiting and not self.is_running


def waiting_sentence(job: SlurmJob) -> str:
    """Why a job waits, as the rest of a sentence that begins with the trial."""
    again = f"was put back into the queue by Slurm (restart {job.restarts}) and " if job.restarts else ""
    if job.state == "CONFIGURING":
        return f"{again}waits until Slurm has its nodes ready (job {job.id}, {job.nodes})"
    return f"{again}{sentence_of(job.reason)} (Slurm job {job.id})"


def running_sentence(job: SlurmJob) -> str:
    """What keeps a job with nodes from running, or ""; as `waiting_sentence`."""
    if job.state in {"SUSPENDED", "STOPPED"}:
        return f"is suspended by Slurm on {job.nodes} (job {job.id}): it goes on when Slurm resumes it"
    return ""


class Ending:
    """What the end of a Slurm job means: the trial's final state, and why."""

    def __init__(self, state: str, reason: str) -> None:
        self.state = state
        self.reason = reason


def ending_of(job: SlurmJob) -> Ending | None:
    """Why Slurm ended a job; None where it was the job itself that ended, well or badly."""
    told = _ENDINGS.get(job.state)
    if told is None:
        return None
    state, reason = told
    return Ending(state, reason.format(id=job.id, nodes=job.nodes or "its node"))


_ENDINGS = {
    "TIMEOUT": (
        "FAILED",
        "Timeout: Slurm ended job {id} at its time limit. Raise `timeout:` in the header, or `time` among the options "
        "of the backend.",
    ),
    "DEADLINE": (
        "FAILED",
        "Slurm ended job {id} at its deadline. Raise `--deadline` in `extra`, or ask for less time.",
    ),
    "CANCELLED": (
        "CANCELLED",
        "Cancelled in Slurm (`scancel` of job {id}), outside of this notebook. `%autotrain retry` submits it again.",
    ),
    "PREEMPTED": (
        "PREEMPTED",
        "Preempted: Slurm gave {nodes} to a job of higher priority (job {id}). `retries:` in the header or "
        "`%autotrain retry` goes on from its last checkpoint.",
    ),
    "NODE_FAIL": (
        "LOST",
        "Lost: {nodes} failed while job {id} ran. `retries:` in the header or `%autotrain retry` goes on from its last "
        "checkpoint.",
    ),
    "BOOT_FAIL": ("LOST", "Lost: {nodes} could not be started for job {id}. `%autotrain retry` submits it again."),
    "OUT_OF_MEMORY": (
        "FAILED",
        "Out of memory: Slurm ended job {id} on {nodes}. Lower the batch size, the model size or the number of loader "
        "processes, or raise `resources: {{memory: ...}}`.",
    ),
    "REVOKED": ("LOST", "Lost: another cluster of the federation took job {id}. `%autotrain retry` submits it again."),
}
