"""The layout of a trial's ranks on its nodes, and the addresses by which they find each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.system import ports

TYPE_CHECKING = False  # `typing` would cost every trial its import
if TYPE_CHECKING:
    from typing import Any

_LOOPBACK = "127.0.0.1"


class RankLayout:
    """The ranks of a trial: those of node 0 first, each node has as many.

    Args:
        workers_per_node: How many ranks a node has.
        node_rank: Which of the nodes this one is, from 0.
        endpoints: Of each node its address, as the other nodes reach it, and its free ports: one for each of its ranks,
            and one more.
        has_one_user: Whether it is the same user on all nodes.
    """

    def __init__(
        self,
        workers_per_node: int,
        node_rank: int,
        endpoints: Sequence[tuple[str, Sequence[int]]],
        has_one_user: bool = True,
    ) -> None:
        self.workers_per_node = workers_per_node
        self.node_rank = node_rank
        self.endpoints = endpoints
        self.has_one_user = has_one_user

    def settle(self, endpoints: Sequence[Sequence[Any]]) -> None:
        """Take the endpoints of all nodes, as they are told when the nodes have met."""
        told = []
        for address, free in endpoints:
            told.append((str(address), list(map(int, free))))
        self.endpoints = told

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.endpoints)

    @property
    def world_size(self) -> int:
        """The number of ranks on all nodes."""
        return self.nodes * self.workers_per_node

    @property
    def address(self) -> str:
        """The address of this node."""
        return self.endpoints[self.node_rank][0]

    @property
    def master_address(self) -> str:
        """The address of the first node, where rank 0 runs."""
        return self.endpoints[0][0]

    @property
    def master_port(self) -> int:
        """A free port of the first node, which belongs to no rank."""
        return self.endpoints[0][1][self.workers_per_node]

    @property
    def master_endpoint(self) -> str:
        """The address and the port as one text."""
        return ports.endpoint(self.master_address, self.master_port)

    def rank(self, local_rank: int) -> int:
        """Return the rank of one of this node's workers."""
        return self.node_rank * self.workers_per_node + local_rank

    def rank_endpoints(self) -> list[str]:
        """Return `ADDRESS:PORT` of each rank, with a port of its own."""
        found = []
        for address, free in self.endpoints:
            found += [ports.endpoint(address, port) for port in free[: self.workers_per_node]]
        return found


def of_trial(trial: Mapping[str, object]) -> RankLayout:
    """Return the layout that `trial.json` gives; one node with free ports of this machine where it gives none.

    Before the nodes have met it has no addresses.
    """
    workers = max(1, fields.integer(trial.get("workers"), 1))
    given = fields.mapping(trial.get("layout"))
    listed = given.get("endpoints")
    node = fields.integer(given.get("node_rank"), 0)
    nodes = fields.integer(given.get("nodes"), 1)
    has_one_user = given.get("has_one_user") is True
    if nodes > 1 and not listed:
        return RankLayout(workers, node, [("", [])] * nodes, has_one_user)
    if not isinstance(listed, list) or not listed:
        is_alone = workers == 1 and trial.get("launcher", "env") == "env"
        free = [0, 0] if is_alone else ports.find_free(workers + 1)
        return RankLayout(workers, 0, [(_LOOPBACK, free)])
    layout = RankLayout(workers, node, [], has_one_user)
    layout.settle(listed)
    return layout
