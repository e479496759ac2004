"""How the ranks of a trial lie on its nodes, and where they find each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.worker import fields, ports

_LOOPBACK = "127.0.0.1"


class RankLayout:
    """The ranks of a trial: those of node 0 first, each node has as many.

    Args:
        workers_per_node: How many ranks a node has.
        node_rank: Which of the nodes this one is, from 0.
        endpoints: Of each node its address, as the other nodes reach it, and its free ports: one for each of its ranks,
            and one more.
        shared_directory: The trial directory, where all nodes have it; "" where each has one of its own.
    """

    def __init__(
        self,
        workers_per_node: int,
        node_rank: int,
        endpoints: Sequence[tuple[str, Sequence[int]]],
        shared_directory: str = "",
    ) -> None:
        self.workers_per_node = workers_per_node
        self.node_rank = node_rank
        self.endpoints = endpoints
        self.shared_directory = shared_directory

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.endpoints)

    @property
    def world_size(self) -> int:
        """How many ranks there are on all nodes."""
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
        """Both as one text."""
        return ports.endpoint(self.master_address, self.master_port)

    def rank(self, local_rank: int) -> int:
        """The rank of one of this node's workers."""
        return self.node_rank * self.workers_per_node + local_rank

    def rank_endpoints(self) -> list[str]:
        """Of each rank `ADDRESS:PORT` with a port of its own."""
        found = []
        for address, free in self.endpoints:
            found += [ports.endpoint(address, port) for port in free[: self.workers_per_node]]
        return found


def of_trial(trial: Mapping[str, object]) -> RankLayout:
    """The layout that `trial.json` gives; one node with free ports of this machine where it gives none."""
    workers = max(1, fields.integer(trial.get("workers"), 1))
    given = fields.mapping(trial.get("layout"))
    listed = given.get("endpoints")
    if not isinstance(listed, list) or not listed:
        is_alone = workers == 1 and trial.get("launcher", "env") == "env"
        free = [0, 0] if is_alone else ports.find_free(workers + 1)
        return RankLayout(workers, 0, [(_LOOPBACK, free)])
    endpoints = []
    for address, free in listed:
        endpoints.append((str(address), [int(port) for port in free]))
    shared = str(given.get("shared_directory") or "")
    return RankLayout(workers, fields.integer(given.get("node_rank"), 0), endpoints, shared)
