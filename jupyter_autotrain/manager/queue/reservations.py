"""Reservations of machines by trials, whichever backend they came there by: one table for all backends.

A machine that two profiles name, or that is this one, has one entry, so it is shared out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from jupyter_autotrain.core.inventory import Node
from jupyter_autotrain.core.spec import NodePlacement, Placement
from jupyter_autotrain.manager.queue.resource_request import Allocation, ResourceRequest


@dataclass(frozen=True, slots=True)
class Reservation:
    """The resources that a trial holds; `backend` is the key of its profile."""

    request: ResourceRequest
    placement: Placement = Placement()  # noqa: RUF009 - frozen
    backend: str = ""


@dataclass(slots=True)
class ReservationTable:
    """The reservations of all trials.

    Attributes:
        jobs: By job id.
        waiting: By machine: the trials that wait for it in this round, in their turn.
        now_s: The present tick.
    """

    jobs: dict[str, Reservation] = field(default_factory=dict)
    waiting: dict[str, list[ResourceRequest]] = field(default_factory=dict)
    now_s: float = 0.0
    _by_machine: dict[str, dict[str, Allocation]] = field(default_factory=dict)
    _ends_s: dict[str, float] = field(default_factory=dict)
    _versions: Counter[str] = field(default_factory=Counter)

    def reserve(self, reservation: Reservation) -> None:
        """Record what a trial has been given."""
        job_id = reservation.request.job_id
        self.jobs[job_id] = reservation
        self._ends_s[job_id] = self.now_s + reservation.request.takes_s
        for placed in reservation.placement.nodes or (NodePlacement(""),):
            machine = _machine_of(reservation.backend, placed)
            held = self._by_machine.setdefault(machine, {})
            held[job_id] = Allocation(reservation.request, placed.accelerators)
            self._versions[machine] += 1

    def release(self, job_id: str) -> None:
        """Release what a job held, if anything."""
        self.jobs.pop(job_id, None)
        self._ends_s.pop(job_id, None)
        for machine, held in self._by_machine.items():
            if held.pop(job_id, None) is not None:
                self._versions[machine] += 1

    def version(self, backend: str, node: Node) -> Hashable:
        """Return a value that is another one whenever trials hold something else of a node."""
        return tuple(map(self._versions.__getitem__, _names(backend, node)))

    def on(self, backend: str, node: Node) -> list[Allocation]:
        """Return what trials hold of a node of a backend."""
        found: dict[str, Allocation] = {}
        for name in _names(backend, node):
            found |= self._by_machine.get(name, {})
        return [replace(one, left_s=self._left_s(job_id)) for job_id, one in found.items()]

    def through(self, backend: str) -> list[Allocation]:
        """Return what trials hold that came by a backend.

        A backend with a single node counts also what it had under another name.
        """
        held = [(job_id, one) for job_id, one in self.jobs.items() if one.backend == backend]
        return [Allocation(one.request, one.placement.accelerators, self._left_s(job_id)) for job_id, one in held]

    def _left_s(self, job_id: str) -> float:
        """Return how long a job goes on; one that is overdue as long again as it is overdue."""
        return abs(self._ends_s[job_id] - self.now_s)


def _names(backend: str, node: Node) -> tuple[str, str, str]:
    """Return the names of a node in the table: its own, and those of when its machine, or its name, was not known."""
    return machine_of(backend, node), _local_name(backend, node.name), _local_name(backend, "")


def machine_of(backend: str, node: Node) -> str:
    """Return the name under which a node is shared out; one whose machine is not known is a machine of its own."""
    return node.machine_id or _local_name(backend, node.name)


def _machine_of(backend: str, placed: NodePlacement) -> str:
    return placed.machine_id or _local_name(backend, placed.node)


def _local_name(backend: str, node: str) -> str:
    return f"{backend}/{node}"
