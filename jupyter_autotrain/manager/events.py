"""What a job watcher tells the main thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.manager.frames import Frames


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a place has; `inventory` is None when it cannot be used, for `reason`."""

    backend: str
    inventory: Inventory | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The place took a job."""

    job_id: str
    ref: JobRef


@dataclass(frozen=True, slots=True)
class Refused:
    """The place did not take a job."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Seen:
    """How a job stands; with a final state all of its stream has been read and its files are here."""

    job_id: str
    status: JobStatus
    frames: Frames


@dataclass(frozen=True, slots=True)
class Doubted:
    """How a job stands cannot be told, for `reason`; an empty reason: it can be told again."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancel is through; without a receipt it failed, for `reason`, and may be tried again."""

    job_id: str
    receipt: CancelReceipt | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A place does not answer, for `reason`; an empty reason: it answers again."""

    backend: str
    reason: str


Event: TypeAlias = Discovered | Submitted | Refused | Seen | Doubted | Cancelled | Unreachable
