"""Reservations of a backend's resources: CPUs, memory and accelerators of its nodes.

Bookkeeping without side effects, so that each refusal can name its cause. FIFO per resource: no starvation.
"""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import NodePlacement, Placement
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.node_allocator import Allocation, NodeAllocator, ResourceRequest, Unschedulable


@dataclass(frozen=True, slots=True)
class Reservation:
    """The resources that a trial holds."""

    request: ResourceRequest
    placement: Placement = Placement()  # noqa: RUF009 - frozen


class ResourceAllocator:
    """The reservations on one backend. `inventory` is None for a backend that queues by itself: then all is granted."""

    def __init__(self, inventory: Inventory | None) -> None:
        self.inventory = inventory
        self.reservations: dict[str, Reservation] = {}
        self._waiting: dict[str, list[tuple[str, ResourceRequest]]] = {}

    def begin_round(self) -> None:
        """Clear the waiting lists; then `try_allocate` is called for all, the oldest first."""
        self._waiting.clear()

    def try_allocate(self, request: ResourceRequest) -> Reservation | Unschedulable:
        """What a trial would get now, on as many nodes as it asks for, or on none; nothing is reserved yet."""
        if self.inventory is None:
            return Reservation(request)
        nodes = self.inventory.nodes
        answers = {node.name: self._allocator(node).try_allocate(request) for node in nodes}
        granted = [answer for answer in answers.values() if isinstance(answer, NodePlacement)]
        if len(granted) >= request.resources.nodes:
            granted.sort(key=lambda placed: len(self._allocations(placed.node)))
            return Reservation(request, Placement(tuple(granted[: request.resources.nodes])))
        blocked = {name: answer for name, answer in answers.items() if isinstance(answer, Unschedulable)}
        return self._refuse(request, len(granted), blocked)

    def reserve(self, reservation: Reservation) -> None:
        """Record what a trial has been given."""
        self.reservations[reservation.request.job_id] = reservation

    def release(self, job_id: str) -> None:
        """Release what a job held, if anything."""
        self.reservations.pop(job_id, None)

    def _allocator(self, node: Node) -> NodeAllocator:
        return NodeAllocator(node, self._allocations(node.name), self._waiting.get(node.name, ()))

    def _allocations(self, node: str) -> list[Allocation]:
        assert self.inventory is not None
        found = []
        for reservation in self.reservations.values():
            if len(self.inventory.nodes) == 1:  # also what a machine that has been renamed since has been given
                found.append(Allocation(reservation.request, reservation.placement.accelerators))
            else:
                placed = [one for one in reservation.placement.nodes if one.node == node]
                found += [Allocation(reservation.request, one.accelerators) for one in placed]
        return found

    def _refuse(self, request: ResourceRequest, granted: int, blocked: dict[str, Unschedulable]) -> Unschedulable:
        assert self.inventory is not None
        later = {name: one for name, one in blocked.items() if not one.permanent}
        for name, one in later.items():
            self._waiting.setdefault(name, []).append((one.resource, request))
        asked = request.resources.nodes
        nodes = len(self.inventory.nodes)
        if nodes < asked:
            found = f"asks for {count(asked, 'node')}; this backend has {nodes}: ask for fewer"
            return Unschedulable("nodes", found, permanent=True)
        if granted + len(later) < asked:
            return _joined("asks for", asked, blocked, nodes)
        return _joined("waits for", asked, later, nodes)


def _joined(verb: str, asked: int, blocked: dict[str, Unschedulable], nodes: int) -> Unschedulable:
    """One answer for all nodes."""
    first = next(iter(blocked.values()))
    if nodes == 1:
        return first
    sentences = "; ".join(f"on {name} it {one.sentence}" for name, one in blocked.items())
    sentence = f"{verb} {count(asked, 'node')}: {sentences}"
    return Unschedulable(first.resource, sentence, permanent=all(one.permanent for one in blocked.values()))
