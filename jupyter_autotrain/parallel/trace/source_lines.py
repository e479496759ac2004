"""Finds the line of the user's code that is running: the innermost frame outside torch and this package."""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
from pathlib import Path
from types import FrameType

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from jupyter_autotrain.errors import TraceError

PACKAGE = str(Path(__file__).parents[2])
LIBRARIES = (f"{Path(torch.__file__).parent}/", f"{PACKAGE}/", contextlib.__file__, "<frozen", "<string>")


def is_library(file: str) -> bool:
    """Whether a file belongs to torch or to this package."""
    return file.startswith(LIBRARIES)


def here() -> str:
    """The innermost frame in the model's code as "file:line", empty if there is none."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the cheap way to the stack; inspect reads files
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def explain(fault: Exception) -> TraceError:
    """A three-clause error for whatever stopped the trace, with the line of the model that did."""
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
