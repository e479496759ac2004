"""The nodes of one trial: their supervisors talk over one authenticated link from each to node 0, with no manager."""

from __future__ import annotations

WAITS = "waits for the other nodes"  # the rest of a sentence that begins with the trial
TYPE_CHECKING = False  # `typing` would cost every trial its import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from jupyter_autotrain.agent.nodes.part import NodePart, Watch


def part_of(trial: Mapping[str, object], token: str, watch: Watch) -> NodePart | None:
    """Return the part of this node in a trial on several; None where it is on one.

    Args:
        trial: What `trial.json` says.
        token: The secret that the supervisors of the trial alone know.
        watch: What the supervisor waits on.
    """
    layout = trial.get("layout")
    if not isinstance(layout, dict) or layout.get("nodes", 1) == 1:
        return None
    if layout.get("node_rank") == 0:
        from jupyter_autotrain.agent.nodes.first_node import FirstNode  # noqa: PLC0415 - only several nodes pay

        return FirstNode(trial, token, watch)
    from jupyter_autotrain.agent.nodes.part import OtherNode  # noqa: PLC0415 - as above

    return OtherNode(trial, token, watch)
