"""Records of a trace: one `TracedOp` per op of the forward pass, and the line of the model's code that called it."""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from jupyter_autotrain.errors import TraceError
from jupyter_autotrain.parallel.graph.graph import TensorKind


@dataclass(frozen=True, slots=True)
class SeenTensor:
    """A tensor as first seen."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: TensorKind
    trainable: bool = False


@dataclass(slots=True)
class TracedOp:
    """One op of the forward pass and what its backward pass was seen to do.

    Attributes:
        kind: Short name of the op.
        name: Module path and short name.
        source: "file:line" of the call in the model's code.
        inputs: Positions in the list of seen tensors.
        outputs: The same.
        inner: Tensors made and used inside.
        args: Arguments that are no tensors, by name.
        pointwise: Whether the framework says that it works element by element.
        exact: Costs were given as a whole; what is dispatched inside does not count.
        saved: Storages kept for the backward pass → their bytes.
        unfused_extra_bytes: As of `Op`.
    """

    kind: str
    name: str
    source: str
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    args: Mapping[str, object] = field(default_factory=dict)
    pointwise: bool = False
    exact: bool = False
    flops_forward: float = 0.0
    flops_backward: float = 0.0
    bytes_forward: float = 0.0
    bytes_backward: float = 0.0
    saved: dict[int, int] = field(default_factory=dict)
    unfused_extra_bytes: int = 0

    def cost(self, flops: float, moved: float, *, backward: bool) -> None:
        """Add what one dispatched op costs, unless the costs were given as a whole."""
        if self.exact:
            return
        if backward:
            self.flops_backward += flops
            self.bytes_backward += moved
        else:
            self.flops_forward += flops
            self.bytes_forward += moved


PACKAGE = str(Path(__file__).parents[2])
LIBRARIES = (f"{Path(torch.__file__).parent}/", f"{PACKAGE}/", contextlib.__file__, "<frozen", "<string>")


def is_library(file: str) -> bool:
    """Return whether a file belongs to torch or to this package."""
    return file.startswith(LIBRARIES)


def here() -> str:
    """Return the innermost frame in the model's code as "file:line", empty if there is none."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the cheap way to the stack; inspect reads files
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def explain(fault: Exception) -> TraceError:
    """Return a three-clause error for whatever stopped the trace, with the line of the model that did."""
    place, code = _line(fault)
    if isinstance(fault, DataDependentOutputException | DynamicOutputShapeException):
        return TraceError(
            f"{place}: {code!r} depends on the values in a tensor.",
            "A graph that is the same for every batch: branches and shapes known from sizes and settings alone.",
            "Use torch.where (or a mask) instead of the branch, or compute the value outside the model.",
        )
    first = str(fault).strip().splitlines()
    return TraceError(
        f"{place}: {code!r} raises {type(fault).__name__}: {first[0] if first else ''}",
        "A model that runs on the example inputs, forward and backward.",
        "Call the model on the same inputs yourself; trace it again when that works.",
    )


def _line(fault: Exception) -> tuple[str, str]:
    frames = traceback.extract_tb(fault.__traceback__)
    own = [f for f in frames if not is_library(f.filename)]
    frame = own[-1] if own else frames[-1]
    number = frame.lineno or 0
    return f"{frame.filename}:{number}", (frame.line or linecache.getline(frame.filename, number)).strip()
