"""The traced model as the search sees it: ops with loop nests, tensors between them, repeated blocks.

Every op, of whatever family, is described by one loop nest, as an einsum is: named loops with sizes, and for each
operand which tensor dim runs along which loop. That single description gives everything the search needs:

* sharding loop `l` on a mesh axis shards each operand dim that runs along `l` and replicates operands without `l`;
* a loop that no output dim runs along is a reduction: sharding it leaves the outputs Partial;
* in the backward pass the gradient of an operand is Partial over every sharded loop that the operand lacks
  (a parameter under a sharded batch loop: the gradient all-reduce of data parallelism).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

DTYPE_BYTES: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}


WHOLE = "whole"
"""Key of `OpGraph.meta`: paths of modules with a matrix, which is not split over a tensor axis, as JSON."""
LINEAR = frozenset(("neg", "_to_copy", "clone", "copy", "contiguous", "detach", "alias", "lift_fresh_copy"))
"""Kinds of ops that are linear in their only tensor, whatever its form."""
SUMS = frozenset(("add", "sub"))
JOINS = frozenset(("cat", "stack"))
"""With `SUMS`, kinds of ops that are linear in all their tensors taken together."""
EXPERTS = "experts"
"""Key of `OpGraph.meta`: paths of modules whose experts may lie on several ranks, as JSON."""
PARTS = "parts"
"""Key of `OpGraph.meta`: path of a module that makes several projections by one product → features of each, as JSON."""
SIZES = "sizes"
"""Key of `OpGraph.meta`: path of a module that writes out sizes of heads or features → attributes that hold them."""


class Family(StrEnum):
    """The kind of an op; one rule file per family builds its loop nest."""

    MATMUL = "matmul"
    EMBEDDING = "embedding"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    NORM = "norm"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    RESHAPE = "reshape"
    LOSS = "loss"
    RECURRENT = "recurrent"
    FOURIER = "fourier"
    LINALG = "linalg"
    DROPOUT = "dropout"
    MOE = "moe"
    UNKNOWN = "unknown"


class LoopRole(StrEnum):
    """The meaning of a loop in the model; microbatches are parts of the loops of role `BATCH`."""

    BATCH = "batch"
    SEQUENCE = "sequence"
    HEAD = "head"
    FEATURE = "feature"
    EXPERT = "expert"
    SPATIAL = "spatial"
    OTHER = "other"


class TensorKind(StrEnum):
    """The origin of a tensor."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    ACTIVATION = "activation"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor edge. `id` is its position in `OpGraph.tensors`; `trainable` only matters for parameters."""

    id: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: TensorKind
    trainable: bool = False

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.numel * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of an op's nest. `shardable` is false where splitting it would change the result (softmax rows ...).

    `couples_iterations` is true where its iterations read each other although it may be split, since the devices then
    exchange what they need (classes of a loss), or since it is usual to let each use its own (batch statistics).

    A dim that runs along a loop has a size that is a multiple of the loop's: the loop is the outer part of the dim
    (heads of a merged head-and-width dim, key-value heads under grouped queries), and splits that divide it evenly
    split every such dim evenly.
    """

    name: str
    size: int
    role: LoopRole = LoopRole.OTHER
    shardable: bool = True
    couples_iterations: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an op uses it: for each tensor dim the index of the loop it runs along, or None."""

    tensor: int
    loops: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class FusedMember:
    """An original op inside a fused one: for each of its loops the loop of the fused op it follows, or None."""

    name: str
    loops: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """One forward op with its backward folded in.

    Attributes:
        id: Position in `OpGraph.ops`, which is a topological order.
        name: Unique and readable: module path plus the op's short name.
        flops_forward: Multiply-adds count twice; of the whole (unsharded) op.
        flops_backward: The same for its backward pass (2x forward for matmuls whose operands both need gradients).
        bytes_forward: Bytes read and written in the forward pass by the whole op.
        bytes_backward: The same for the backward pass.
        saved: Ids of the tensors kept for the backward pass (a tensor saved by several ops is stored once). They are
            named by the tensor that owns the storage, so an op that saves a view names the view's base, which need
            not be one of its own operands; it is always an operand of the op that made it.
        saved_extra_bytes: Bytes kept that are no graph tensor (dropout masks, softmax statistics); they shard
            with the output.
        unfused_extra_bytes: Further bytes kept where attention with dropout, and dropout, are not fused kernels.
        source: "file:line" in the user's model, or "".
        members: The original ops of a fused op, in order; empty for an op that is its own only member.
    """

    id: int
    name: str
    family: Family
    kind: str
    loops: tuple[Loop, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    flops_forward: float = 0.0
    flops_backward: float = 0.0
    bytes_forward: float = 0.0
    bytes_backward: float = 0.0
    saved: tuple[int, ...] = ()
    saved_extra_bytes: int = 0
    unfused_extra_bytes: int = 0
    source: str = ""
    members: tuple[FusedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatedBlocks:
    """`count` structurally equal blocks in a row: block k is ops [start + k*length, start + (k+1)*length)."""

    start: int
    length: int
    count: int
    name: str = ""


@dataclass(frozen=True)
class OpGraph:
    """A whole training step's forward graph, with backward costs folded into the ops. Torch-free, serialisable.

    Attributes:
        ops: In topological order.
        tensors: All tensors; ids are positions.
        repeated_blocks: Repeated blocks, in order, not overlapping.
        unknown: Names of op kinds that had no rule and are replicated.
        tied: Pairs of parameter ids that share storage (counted once in memory).
        unsplittable_reason: Why the batch is not cut into microbatches; empty where it may be, along loops of role
            `BATCH`.
        producers: Tensor id → id of the op that makes it.
        consumers: Tensor id → ids of the ops that read it, in order.
    """

    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    name: str = ""
    repeated_blocks: tuple[RepeatedBlocks, ...] = ()
    unknown: tuple[str, ...] = ()
    tied: tuple[tuple[int, int], ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)
    unsplittable_reason: str = ""
    producers: Mapping[int, int] = field(init=False, repr=False, compare=False)
    consumers: Mapping[int, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "producers", _producers(self.ops))
        object.__setattr__(self, "consumers", _consumers(self.ops))

    def readers(self, op: Op) -> Iterator[int]:
        """Yield the ids of the ops that read what an op makes, once for each tensor that they read."""
        for out in op.outputs:
            yield from self.consumers.get(out.tensor, ())


def _producers(ops: Iterable[Op]) -> dict[int, int]:
    return {operand.tensor: op.id for op in ops for operand in op.outputs}


def _consumers(ops: Iterable[Op]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for op in ops:
        for operand in op.inputs:
            found.setdefault(operand.tensor, []).append(op.id)
    return {tensor: tuple(dict.fromkeys(ids)) for tensor, ids in found.items()}
