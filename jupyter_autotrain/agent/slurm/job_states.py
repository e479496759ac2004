"""The states of Slurm's jobs and the reasons why they wait, in plain words. Runs on the login node; pure."""

from __future__ import annotations

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
        """True when its tasks have ended while some node still cleans up."""
        return self.state == "COMPLETING"

    @property
    def has_ended(self) -> bool:
        """True when Slurm is done with it."""
        return not self.is_waiting and not self.is_running


def waiting_sentence(job: SlurmJob) -> str:
    """Return the reason why a job waits, as the rest of a sentence that begins with the trial."""
    again = f"was put back into the queue by Slurm (restart {job.restarts}) and " if job.restarts else ""
    if job.state == "CONFIGURING":
        return f"{again}waits until Slurm has its nodes ready (job {job.id}, {job.nodes})"
    return f"{again}{sentence_of(job.reason)} (Slurm job {job.id})"


def sentence_of(reason: str) -> str:
    """Return the reason as the rest of a sentence that begins with the trial.

    An unknown reason is passed on in Slurm's own words.
    """
    plain = reason.strip("()")
    if plain.startswith("ReqNodeNotAvail"):  # followed by the nodes
        plain = "ReqNodeNotAvail"
    plain = plain.replace(" ", "_")
    return _SENTENCES.get(plain) or _limit(plain) or f"waits in Slurm: {reason}"


def _limit(reason: str) -> str:
    """Return the sentence for a limit of an account or a service, or "".

    The many limits are all named alike: AssocGrpCpuLimit, QOSMaxJobsPerUserLimit.
    """
    for prefix, whose in _LIMITS:
        if reason.startswith(prefix) and any(kind in reason for kind in ("Grp", "Max", "Min")):
            what = next((name for key, name in _RESOURCES if key in reason), "resources")
            who = "of its group" if "Grp" in reason else "for one user or job"
            return f"waits: the limit on {what} {who} of its {whose} is reached ({reason}); it starts when others end"
    return ""


def running_sentence(job: SlurmJob) -> str:
    """Return the reason why a job with nodes does not run, or ""; as `waiting_sentence`."""
    if job.state in {"SUSPENDED", "STOPPED"}:
        return f"is suspended by Slurm on {job.nodes} (job {job.id}): it goes on when Slurm resumes it"
    return ""


class Ending:
    """The meaning of a Slurm job's end: the trial's final state, and the reason."""

    def __init__(self, state: str, reason: str) -> None:
        self.state = state
        self.reason = reason


def ending_of(job: SlurmJob) -> Ending | None:
    """Return the ending of a job that Slurm ended; None where the job itself ended, well or badly."""
    told = _ENDINGS.get(job.state)
    if told is None:
        return None
    state, reason = told
    return Ending(state, reason.format(id=job.id, nodes=job.nodes or "its node"))


_SENTENCES = {
    "": "waits for Slurm's scheduler",
    "None": "waits for Slurm's scheduler",
    "Resources": "waits for nodes that have what it asks for: it is next in line",
    "Priority": "waits behind jobs of higher priority in its partition",
    "BeginTime": "waits for the time it may begin at",
    "Cleaning": "waits until its earlier run is cleaned up",
    "Dependency": "waits for another job that it depends on",
    "DependencyNeverSatisfied": "never starts: a job that it depends on did not end as asked; stop it and submit again",
    "InvalidAccount": "never starts: its account is not valid; correct `account` among the backend's options",
    "InvalidQOS": "never starts: its QOS is not valid; correct `--qos` in `extra`",
    "JobArrayTaskLimit": "waits: as many tasks of its array run as may run at the same time",
    "JobHeldAdmin": "is held by an administrator: ask them to release it",
    "JobHeldUser": "is held by its user: `scontrol release` lets it go",
    "JobLaunchFailure": "could not be launched: see the log of the node, or ask an administrator",
    "launch_failed_requeued_held": "could not be launched and is held: `scontrol release` tries it again",
    "Licenses": "waits for a licence",
    "NodeDown": "waits for a node that is down",
    "NodeFailed": "waits: a node of it failed",
    "PartitionDown": "waits: its partition is down",
    "PartitionInactive": "waits: its partition takes no jobs at the moment",
    "PartitionNodeLimit": "never starts: it asks for more nodes than its partition has; ask for fewer",
    "PartitionTimeLimit": "never starts: it asks for more time than its partition allows; lower `timeout:` or `time`",
    "PartitionConfig": "never starts: it does not fit the limits of its partition; ask for less",
    "ReqNodeNotAvail": "waits for a node that is asked for and cannot be had now: down, drained or reserved",
    "BadConstraints": "never starts: no node meets its constraints; change `resources:` or `--constraint` in `extra`",
    "Reservation": "waits for its reservation to begin",
    "ReservationDeleted": "never starts: its reservation was deleted",
    "SystemFailure": "waits: Slurm or its file system failed",
    "TimeLimit": "waits: it reached its time limit",
    "Prolog": "waits for the prolog of its nodes",
    "NonZeroExitCode": "is held: an earlier run of it failed",
    "RaisedSignal": "is held: an earlier run of it was ended by a signal",
    "BurstBufferResources": "waits for room in the burst buffer",
    "FrontEndDown": "waits: no front end node is up",
    "AccountNotAllowed": "never starts: its account may not use this partition; change `account` or `partition`",
    "QOSNotAllowed": "never starts: its QOS may not be used in this partition; change `--qos` in `extra`",
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions": (
        "waits for nodes that are down, drained or reserved for partitions of higher priority"
    ),
}
_LIMITS = (
    ("QOS", "quality of service (QOS)"),
    ("Assoc", "account"),
)
_RESOURCES = (
    ("GRES", "GPUs"), ("Gres", "GPUs"), ("Cpu", "CPUs"), ("CPU", "CPUs"), ("Mem", "memory"), ("Node", "nodes"),
    ("Submit", "submitted jobs"), ("Jobs", "jobs"), ("Wall", "time"), ("Billing", "billing units"),
    ("License", "licences"),
)  # fmt: skip
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
