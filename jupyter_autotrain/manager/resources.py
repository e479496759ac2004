"""Who holds what of a backend: CPUs, memory and accelerators of its nodes.

Pure bookkeeping, so that each refusal can name its true cause.
First come, first served: who waits for something keeps it from those behind, so that nobody starves.
"""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import NodePlacement, Placement
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.node_allocator import Blocked, Holder, Need, NodeAllocator


@dataclass(frozen=True, slots=True)
class Grant:
    """What a trial holds."""

    need: Need
    placement: Placement = Placement()  # noqa: RUF009 - frozen


class ResourceAllocator:
    """The holders of one backend. `inventory` is None for a backend that queues by itself: then all is granted."""

    def __init__(self, inventory: Inventory | None) -> None:
        self.inventory = inventory
        self.held: dict[str, Grant] = {}
        self._waiting: dict[str, list[tuple[str, Need]]] = {}

    def begin_round(self) -> None:
        """Forget who waits; then `ask` is called for all, the oldest first."""
        self._waiting.clear()

    def ask(self, need: Need) -> Grant | Blocked:
        """Say what a trial would get now, on as many nodes as it asks for, or on none; nothing is held yet."""
        if self.inventory is None:
            return Grant(need)
        nodes = self.inventory.nodes
        answers = {node.name: self._allocator(node).ask(need) for node in nodes}
        granted = [answer for answer in answers.values() if isinstance(answer, NodePlacement)]
        if len(granted) >= need.resources.nodes:
            granted.sort(key=lambda placed: len(self._holders(placed.node)))
            return Grant(need, Placement(tuple(granted[: need.resources.nodes])))
        blocked = {name: answer for name, answer in answers.items() if isinstance(answer, Blocked)}
        return self._refuse(need, len(granted), blocked)

    def hold(self, grant: Grant) -> None:
        """Keep what a trial has been given."""
        self.held[grant.need.job_id] = grant

    def free(self, job_id: str) -> None:
        """Release what a job held, if anything."""
        self.held.pop(job_id, None)

    def _allocator(self, node: Node) -> NodeAllocator:
        return NodeAllocator(node, self._holders(node.name), self._waiting.get(node.name, ()))

    def _holders(self, node: str) -> list[Holder]:
        assert self.inventory is not None
        found = []
        for grant in self.held.values():
            if len(self.inventory.nodes) == 1:  # also what a machine that has been renamed since has been given
                found.append(Holder(grant.need, grant.placement.accelerators))
            else:
                placed = [one for one in grant.placement.nodes if one.node == node]
                found += [Holder(grant.need, one.accelerators) for one in placed]
        return found

    def _refuse(self, need: Need, granted: int, blocked: dict[str, Blocked]) -> Blocked:
        assert self.inventory is not None
        later = {name: one for name, one in blocked.items() if not one.permanent}
        for name, one in later.items():
            self._waiting.setdefault(name, []).append((one.resource, need))
        asked = need.resources.nodes
        nodes = len(self.inventory.nodes)
        if nodes < asked:
            found = f"asks for {count(asked, 'node')}; this backend has {nodes}: ask for fewer"
            return Blocked("nodes", found, permanent=True)
        if granted + len(later) < asked:
            return _joined("asks for", asked, blocked, nodes)
        return _joined("waits for", asked, later, nodes)


def _joined(verb: str, asked: int, blocked: dict[str, Blocked], nodes: int) -> Blocked:
    """One answer for all nodes."""
    first = next(iter(blocked.values()))
    if nodes == 1:
        return first
    sentences = "; ".join(f"on {name} it {one.sentence}" for name, one in blocked.items())
    sentence = f"{verb} {count(asked, 'node')}: {sentences}"
    return Blocked(first.resource, sentence, permanent=all(one.permanent for one in blocked.values()))
