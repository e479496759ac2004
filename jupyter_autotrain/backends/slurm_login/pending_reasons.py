"""Why a job of Slurm waits, in plain words. Runs on the login node; pure."""

from __future__ import annotations

_SENTENCES = {
    "": "waits for Slurm to look at it",
    "None": "waits for Slurm to look at it",
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


def sentence_of(reason: str) -> str:
    """The rest of a sentence that begins with the trial; an unknown reason is passed on in Slurm's own words."""
    plain = reason.strip("()")
    if plain.startswith("ReqNodeNotAvail"):  # followed by the nodes
        plain = "ReqNodeNotAvail"
    plain = plain.replace(" ", "_")
    return _SENTENCES.get(plain) or _limit(plain) or f"waits in Slurm: {reason}"


def _limit(reason: str) -> str:
    """The many limits of accounts and services, which are all named alike: AssocGrpCpuLimit, QOSMaxJobsPerUserLimit."""
    for prefix, whose in _LIMITS:
        if reason.startswith(prefix) and any(kind in reason for kind in ("Grp", "Max", "Min")):
            what = next((name for key, name in _RESOURCES if key in reason), "resources")
            who = "of its group" if "Grp" in reason else "for one user or job"
            return f"waits: the limit on {what} {who} of its {whose} is reached ({reason}); it starts when others end"
    return ""
