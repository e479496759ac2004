"""Short names and colours for ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jupyter_autotrain.parallel.graph.graph import LoopRole, Op

COLOURS: Final[Mapping[LoopRole, str]] = {
    LoopRole.BATCH: "data",
    LoopRole.SEQUENCE: "sequence",
    LoopRole.FEATURE: "tensor",
    LoopRole.HEAD: "tensor",
    LoopRole.OTHER: "tensor",
    LoopRole.EXPERT: "expert",
    LoopRole.SPATIAL: "spatial",
}


def label(op: Op) -> str:
    """The last two parts of an op's path: `q_proj.linear`, without numbers of layers."""
    parts = [part for part in op.name.split(".") if not part.isdigit()]
    return ".".join(parts[-2:])


def colour(split: Sequence[LoopRole | None]) -> str:
    """One word for what a node is split along."""
    kinds = {COLOURS[role] for role in split if role}
    if not kinds:
        return "replica"
    return kinds.pop() if len(kinds) == 1 else "mixed"
