"""The parts that exports to several tools share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan.degrees import Degrees

Values: TypeAlias = dict[str, object]
Missing: TypeAlias = Iterator[str]


def is_sharded(d: Degrees) -> bool:
    """Return whether ranks share out states."""
    return d.data > 1 and d.zero is not ZeroLevel.NONE


def accumulates(d: Degrees) -> bool:
    """Return whether gradients of several microbatches are accumulated."""
    return d.microbatches > 1 and d.pipeline == 1


def no_offload(d: Degrees, why: str) -> Missing:
    """Yield the host's part in a plan, for a tool without a setting for it."""
    if d.offload:
        yield f"optimizer states in the host's memory: {why}"


def no_axes(d: Degrees, who: str, **lacking: bool) -> Missing:
    """Yield the degrees of a plan that a tool has no setting for."""
    used = {"tensor": d.tensor, "context": d.context, "expert": d.expert, "pipeline": d.pipeline}
    for name in lacking:
        if name in used and used[name] > 1:
            yield f"{name} {used[name]}: {who} has no setting for it"
    if lacking.get("sequence") and d.is_sequence_split:
        yield f"sequence parallelism: {who} has no setting for it"
