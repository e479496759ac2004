"""What the store holds of what blocks an experiment's trials, so that it is written only when it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.manager.context import ManagerContext


@dataclass(slots=True)
class PublishedReasons:
    """Of one experiment.

    Attributes:
        blocked: Why each trial is blocked, by number.
        nodes: Those that do not answer and have trials of it.
        unreachable: The trials there.
    """

    blocked: Mapping[int, str] = field(default_factory=dict)
    nodes: list[UnreachableNode] = field(default_factory=list)
    unreachable: frozenset[int] = frozenset()

    @classmethod
    def stored(cls, context: ManagerContext, experiment_id: str) -> PublishedReasons:
        """What the manager before has published."""
        store = context.store
        blocked = context.retry_store(store.block_reasons, experiment_id)
        return cls(blocked, context.retry_store(store.unreachable_nodes, experiment_id))

    def publish(
        self,
        context: ManagerContext,
        experiment_id: str,
        blocked: Mapping[int, str],
        nodes: list[UnreachableNode],
    ) -> None:
        """Store what has changed."""
        if nodes != self.nodes:
            context.retry_store(context.store.set_unreachable_nodes, experiment_id, nodes)
            self.nodes = nodes
        if blocked != self.blocked:
            context.retry_store(context.store.set_block_reasons, experiment_id, blocked)
            self.blocked = blocked
