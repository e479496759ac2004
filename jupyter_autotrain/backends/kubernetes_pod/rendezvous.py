"""How the pods of a trial on several nodes find each other, and what they tell each other. Python 3.9.

The pod of node 0 listens on its own address; the others connect to it, by the name that the object's controller gives
it, and stay connected. Each says where its ranks will listen and gets the layout of all. Meanwhile they pass on what
other backends have their manager carry: what ranks report together goes to node 0, what `mpiexec` wants to be run goes
to the others, and when one node has failed or is lost the others end. An elastic trial goes on without a lost node, and
lets it in again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_autotrain.backends.kubernetes_pod import peers
from jupyter_autotrain.backends.kubernetes_pod.pod_part import StatusFile
from jupyter_autotrain.worker import fields

if TYPE_CHECKING:
    from jupyter_autotrain.backends.kubernetes_pod.first_node import FirstNode
    from jupyter_autotrain.backends.kubernetes_pod.other_node import OtherNode


class Part(Protocol):
    """The part of one pod."""

    def join(self, stops: Callable[[], bool]) -> dict[str, Any]:
        """Meet the others; gives the layout for `trial.json`.

        Args:
            stops: Whether this pod is told to end.

        Raises:
            PeersError: They do not come.
        """
        ...

    def advance(self, status: StatusFile) -> None:
        """Do what is due, by the status of this pod's supervisor."""
        ...

    def finish(self, status: StatusFile) -> None:
        """Say how this pod's part has ended, and close."""
        ...


def of_pod(
    options: Mapping[str, object], environ: Mapping[str, str], workers: int, token: str
) -> FirstNode | OtherNode:
    """The part of this pod.

    Args:
        options: What the pod was told: `nodes`, `elastic`, `variables` (`NodeVariables` as JSON).
        environ: The variables of its container.
        workers: How many ranks each node has.
        token: Known to the pods of the trial alone.
    """
    from jupyter_autotrain.backends.kubernetes_pod.first_node import FirstNode  # noqa: PLC0415 - only several nodes pay
    from jupyter_autotrain.backends.kubernetes_pod.other_node import OtherNode  # noqa: PLC0415 - as above

    node = node_of(options, environ)
    if node == 0:
        nodes = fields.integer(options.get("nodes"), 1)
        return FirstNode(nodes, workers, token, is_elastic=options.get("elastic") is True)
    return OtherNode(node, workers, token, _first_address(options, environ))


def _first_address(options: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """The host name or address of node 0."""
    names = fields.mapping(options.get("variables"))
    kind = str(names.get("peers") or "")
    if kind:
        return peers.addresses(kind, environ)[0]
    return environ.get(str(names.get("first_address")), "")


def node_of(options: Mapping[str, object], environ: Mapping[str, str]) -> int:
    """Which node of the trial this pod is, from 0."""
    names = fields.mapping(options.get("variables"))
    rank = environ.get(str(names.get("rank") or "-"), "0")
    offset = environ.get(str(names.get("offset") or "-"), "0")
    return int(rank) + int(offset)
