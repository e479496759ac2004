"""What a job watcher sends to the main thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.manager.frames import Frames


@dataclass(frozen=True, slots=True)
class Discovered:
    """What the backend with this key has; `inventory` is None when it cannot be used, for `reason`.

    `is_lasting` when it is of no use to ask again.
    """

    backend: str
    inventory: Inventory | None
    reason: str = ""
    is_lasting: bool = True


@dataclass(frozen=True, slots=True)
class Submitted:
    """The backend accepted a job."""

    job_id: str
    ref: JobRef


@dataclass(frozen=True, slots=True)
class SubmitProgress:
    """What the submit of a job is doing, as an upload; "" when that is over."""

    job_id: str
    what: str


@dataclass(frozen=True, slots=True)
class SubmitFailed:
    """The backend did not accept a job.

    `refused` is for this backend, `impossible` for all; or it does not answer, or whether the job began is not known.
    """

    job_id: str
    reason: str
    kind: Literal["refused", "impossible", "unreachable", "unknown"] = "refused"


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """The status of a job and what it reported; a final state comes after all of its stream and files."""

    job_id: str
    status: JobStatus
    frames: Frames


@dataclass(frozen=True, slots=True)
class StatusUnknown:
    """The status of a job cannot be found out, for `reason`; an empty reason: it can again.

    `unreachable` when its node does not answer, or of several the `nodes`.
    """

    job_id: str
    reason: str
    unreachable: bool = False
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancel has ended; without a receipt it failed, for `reason`, and may be tried again.

    `unreachable` when it failed because the job's node does not answer.
    """

    job_id: str
    receipt: CancelReceipt | None
    reason: str = ""
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The backend with this key does not answer, for `reason`; an empty reason: it answers again."""

    backend: str
    reason: str


JobEvent: TypeAlias = Submitted | SubmitProgress | SubmitFailed | JobUpdate | StatusUnknown | Cancelled
Event: TypeAlias = JobEvent | Discovered | Unreachable
