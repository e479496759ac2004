"""The answers of a backend's nodes, asked once for all trials alike until what trials hold of a node changes.

A trial that starts asks each node of a cluster, and most of these have not changed since a trial like it asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from jupyter_autotrain.core.inventory import Node
from jupyter_autotrain.core.spec import NodePlacement
from jupyter_autotrain.manager.queue.node_allocator import NodeAllocator
from jupyter_autotrain.manager.queue.reservations import ReservationTable, machine_of
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The answer of a node to a request.

    Attributes:
        node: The node, as it was then.
        version: That of what trials held of it.
        answer: What a trial would get there, or why it gets nothing.
        spare: How much it would leave there; only where it gets something.
    """

    node: Node
    version: Hashable
    answer: NodePlacement | Unschedulable
    spare: float = 0.0


@dataclass(slots=True)
class NodeAnswers:
    """The nodes of one backend, asked for answers.

    Attributes:
        table: What trials hold, of all backends.
        backend: The key of the backend's profile.
    """

    table: ReservationTable
    backend: str
    _kept: dict[tuple[str, Hashable], NodeAnswer] = field(default_factory=dict)

    def allocator(self, node: Node, *, is_only: bool) -> NodeAllocator:
        """Return a node with what trials hold of it and others wait for.

        Args:
            node: The node.
            is_only: It is the only one of its backend.
        """
        is_only = is_only and not node.machine_id
        allocations = self.table.through(self.backend) if is_only else self.table.on(self.backend, node)
        return NodeAllocator(node, allocations, self.table.waiting.get(machine_of(self.backend, node), ()))

    def ask(self, node: Node, request: ResourceRequest, *, is_only: bool) -> NodeAnswer:
        """Return a node's answer; O(1) where it has been asked by a trial alike and nothing has changed since."""
        if is_only or request.refused or machine_of(self.backend, node) in self.table.waiting:
            return self._asked(node, request, None, is_only=is_only)
        version = self.table.version(self.backend, node)
        key = node.name, (request.resources, request.policy)
        kept = self._kept.get(key)
        if kept is None or kept.node is not node or kept.version != version:
            kept = self._kept[key] = self._asked(node, request, version, is_only=False)
        return kept

    def _asked(self, node: Node, request: ResourceRequest, version: Hashable, *, is_only: bool) -> NodeAnswer:
        allocator = self.allocator(node, is_only=is_only)
        answer = allocator.try_allocate(request)
        spare = allocator.spare(request) if isinstance(answer, NodePlacement) else 0.0
        return NodeAnswer(node, version, answer, spare)
