"""The `Call` that a rule takes, and the `Nest` that it returns, built from einsum subscripts."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TypeAlias

from jupyter_autotrain.parallel.graph.graph import Family, Loop, LoopRole

Shape: TypeAlias = tuple[int, ...]
Dims: TypeAlias = tuple[int | None, ...]

POOL = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters for a rule that takes tensors of any rank; lower case is for dims that a rule names."""

ROLES: Mapping[str, LoopRole] = {
    "h": LoopRole.HEAD,
    "e": LoopRole.EXPERT,
    "y": LoopRole.SPATIAL,
}
"""Letters whose role is fixed; all other roles are propagated from the model's inputs."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of an op, without its framework.

    Attributes:
        kind: The op's short name, in-place mark removed.
        inputs: Shapes of its tensor inputs in the order they are passed.
        outputs: Shapes of its outputs.
        args: Its other arguments by name.
        pointwise: Whether the framework says that it works element by element.
    """

    kind: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    args: Mapping[str, object] = field(default_factory=dict)
    pointwise: bool = False

    def dims(self, name: str, rank: int, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Argument `name` as non-negative dims of a tensor of that rank."""
        given = self.args.get(name)
        if isinstance(given, int) and not isinstance(given, bool):
            given = [given]
        chosen = [d for d in given if isinstance(d, int)] if isinstance(given, list | tuple) else list(default)
        return tuple(d + rank if d < 0 else d for d in chosen)

    def integer(self, name: str, default: int) -> int:
        """Argument `name` as a number."""
        given = self.args.get(name, default)
        return given if isinstance(given, int) else default


@dataclass(frozen=True, slots=True)
class Nest:
    """The loop nest of a call and, for each operand, the loop of each dim."""

    family: Family
    loops: tuple[Loop, ...]
    inputs: tuple[Dims, ...]
    outputs: tuple[Dims, ...]


Rule: TypeAlias = Callable[[Call], Nest]


def nest(
    call: Call, family: Family, inputs: Sequence[str], outputs: Sequence[str], fixed: str = "", mixed: str = ""
) -> Nest:
    """Build a nest from the einsum subscripts of each operand, one letter per dim.

    Args:
        call: The op; its shapes give the loop sizes (the greatest common divisor of the dims along a loop).
        family: The op's family.
        inputs: Subscripts of each input; `.` is a dim along no loop.
        outputs: Subscripts of each output.
        fixed: Letters of the loops that must not be split.
        mixed: Letters of the loops whose iterations read each other although they may be split.
    """
    sizes: dict[str, int] = {}
    for subscripts, shape in zip((*inputs, *outputs), (*call.inputs, *call.outputs), strict=True):
        for letter, size in zip(subscripts, shape, strict=True):
            if letter != ".":
                sizes[letter] = gcd(sizes.get(letter, 0), size)
    loops = tuple(_loop(letter, size, fixed, mixed) for letter, size in sizes.items())
    index = {letter: position for position, letter in enumerate(sizes)}
    return Nest(family, loops, _places(inputs, index), _places(outputs, index))


def _loop(letter: str, size: int, fixed: str, mixed: str) -> Loop:
    is_open = letter not in fixed and size > 1
    return Loop(letter.lower(), size, ROLES.get(letter, LoopRole.OTHER), is_open, letter in mixed)


def _places(operands: Sequence[str], index: Mapping[str, int]) -> tuple[Dims, ...]:
    return tuple(tuple(map(index.get, subscripts)) for subscripts in operands)


def letters(rank: int, whole: Container[int] = ()) -> str:
    """Return a letter for each dim of a tensor, and dots for those that stay whole."""
    return "".join("." if dim in whole else POOL[dim] for dim in range(rank))


def dots(shapes: Iterable[Shape]) -> list[str]:
    """Return the subscripts of tensors that stay whole."""
    return ["." * len(shape) for shape in shapes]


def alike(subscripts: str, shapes: Iterable[Shape]) -> list[str]:
    """Return these subscripts for all tensors of as many dims, and dots for the others."""
    return [subscripts if len(shape) == len(subscripts) else "." * len(shape) for shape in shapes]


def led(lead: str, shapes: Iterable[Shape]) -> list[str]:
    """Return the same letters for the first dims of each tensor, and dots for the others."""
    return [lead + "." * (len(shape) - len(lead)) for shape in shapes]


def broadcast(shape: Shape, out: Shape, subscripts: str) -> str:
    """Subscripts of an operand of that shape broadcast into `out`, from those of `out`; stretched dims have no loop."""
    skip = len(out) - len(shape)
    return "".join(
        letter if size == whole else "."
        for size, whole, letter in zip(shape, out[skip:], subscripts[skip:], strict=True)
    )


def replicated(call: Call, family: Family = Family.UNKNOWN) -> Nest:
    """Return the nest of an op of which nothing may be split."""
    return nest(call, family, dots(call.inputs), dots(call.outputs))
