"""Events that job watchers send to the main thread, and the bounded queue for them.

From the job watchers to the main thread: a bounded queue that can be selected on. Bounded, so that watchers wait when
the main thread cannot write to a full disk: what they would read stays safe in the trials' files.
"""

from __future__ import annotations

import queue
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus
from jupyter_autotrain.core.federated import RoundNews
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.manager.jobs.metrics_stream import Frames


@dataclass(frozen=True, slots=True)
class Discovered:
    """The nodes of the backend with this key; `inventory` is None when it cannot be used, for `reason`.

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
    """The step that the submit of a job is at, such as an upload; "" when that is over."""

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
Event: TypeAlias = JobEvent | Discovered | Unreachable | RoundNews


_CAPACITY = 256


class EventQueue:
    """Many threads `emit`, one `drain`s."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Event] = queue.Queue(_CAPACITY)
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)

    def emit(self, event: Event) -> None:
        """Post an event; blocks while the queue is full."""
        self._queue.put(event)
        self.wake()

    def wake(self) -> None:
        """Make `fileno` readable; safe in a signal handler."""
        with suppress(BlockingIOError):  # full of wake-ups that are not read yet
            self._sender.send(b"!")

    def drain(self) -> list[Event]:
        """Everything posted since the last call."""
        with suppress(BlockingIOError):
            while self._receiver.recv(4096):
                pass
        events = []
        with suppress(queue.Empty):
            while True:
                events.append(self._queue.get_nowait())
        return events

    def fileno(self) -> int:
        """Return what to select on."""
        return self._receiver.fileno()

    def close(self) -> None:
        """Give the sockets back."""
        self._receiver.close()
        self._sender.close()
