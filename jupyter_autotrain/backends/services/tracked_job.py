"""One trial at a service as this process knows it: its job, and what has come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from jupyter_autotrain.agent.pods import frames
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.log_channel.collected import CollectedNode, CollectedTrial
from jupyter_autotrain.backends.log_channel.log_reading import LogReader
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.core.backend import JobRef

_LINGERS_BYTES = frames.SAFE_LOG_BYTES // 2  # a job that has written twice as much waits until all is collected


@dataclass(slots=True, eq=False)
class ServiceJob:
    """A trial as this process knows it.

    Attributes:
        ref: The job.
        collected: What has come of it.
        readers: Read the logs of its workers, one for each node.
        state: At the service; None before it was asked.
        fault: Why its state or its log is not known at the moment.
        final: How it ended, once that is settled.
        is_cancelled: Whether a cancel has asked for its end.
        is_read: Whether its whole logs were read once by this process.
        over_since_s: The tick at which the service first said that it is over, or does not know it.
    """

    ref: JobRef
    collected: CollectedTrial
    readers: list[LogReader] = field(init=False)
    state: ServiceState | None = None
    fault: str = ""
    final: Status | None = None
    is_cancelled: bool = False
    is_read: bool = False
    over_since_s: float = 0.0

    def __post_init__(self) -> None:
        self.readers = [LogReader(self.collected, node=node) for node in self.collected.nodes]
        self.final = self.collected.final_status()

    @property
    def name(self) -> str:
        """The name of its job at the service."""
        return str(self.ref.data.get("name") or "")

    @property
    def counted(self) -> Sequence[CollectedNode]:
        """The nodes that say how it stands; an elastic trial ends with its first one."""
        return self.collected.nodes[:1] if self.ref.data.get("elastic") else self.collected.nodes

    def status(self) -> Status | None:
        """Return what the supervisor of its first node has told last."""
        return self.collected.nodes[0].status()

    def statuses(self) -> list[Status | None]:
        """Return what the supervisors of its nodes have told last."""
        return [node.status() for node in self.counted]

    def has_ended(self) -> bool:
        """Return whether all that its logs say has come."""
        return all(node.has_ended() for node in self.counted)

    def settled(self) -> Status | None:
        """Return how it ended, once that is settled: by this process, or by another one."""
        if self.final is None:
            self.final = self.collected.final_status()
        return self.final

    def lacks_files(self) -> bool:
        """Return whether a node has ended, and its log has not held all that it should."""
        return any(node.listing() is not None and not node.has_ended() for node in self.counted)

    def is_over(self) -> bool:
        """Return whether the service says that it has ended."""
        return self.state is not None and self.state.state.is_final

    def has_left_much(self) -> bool:
        """Return whether the log of a node may not hold all that it has left."""
        for node in self.collected.nodes:
            sizes = cast("dict[str, int]", (node.listing() or {}).get("sizes") or {})
            if node.left or sum(sizes.values()) > _LINGERS_BYTES:
                return True
        return False
