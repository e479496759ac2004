"""How one tensor lies on one mesh axis (the terms of torch's DTensor)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Shard:
    """Each device of the axis holds an equal slice along tensor dim `dim`."""

    KIND: ClassVar[str] = "shard"
    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, slots=True)
class Replicate:
    """Each device of the axis holds the whole tensor."""

    KIND: ClassVar[str] = "replicate"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, slots=True)
class Partial:
    """Each device of the axis holds a summand; the tensor is their sum."""

    KIND: ClassVar[str] = "partial"

    def __str__(self) -> str:
        return "P"


Placement: TypeAlias = Shard | Replicate | Partial
Placements: TypeAlias = tuple[Placement, ...]  # one per mesh axis, in the mesh's order
