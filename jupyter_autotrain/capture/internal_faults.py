"""Exceptions that no part of the capture foresees, told as refusals that name the object.

Objects of a notebook run code of anybody's when they are looked at (`__getattr__`, `__eq__`, `__reduce__`). What that
code raises must neither show a traceback of the framework nor send a script that is wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from jupyter_autotrain.errors import AutotrainError, CaptureError


@contextlib.contextmanager
def refused_by_name(name: str) -> Iterator[None]:
    """Turn an exception that nothing foresees into a refusal.

    Args:
        name: The variable, function or class that is captured meanwhile; "" for the cell as a whole.

    Raises:
        CaptureError: The block raised an exception that is not one of ours.
    """
    try:
        yield
    except AutotrainError:
        raise
    except Exception as error:
        what = f"`{name}`" if name else "this cell"
        raise CaptureError(
            f"Capturing {what} failed inside the capture: {type(error).__name__}: {error} ({_place(error)}).",
            "Every object either travels or is refused for a reason of its own; this is a fault of jupyter_autotrain.",
            f"Make {what} anew inside the cell, or leave it out; please report these lines with the object's type.",
        ) from error


def _place(error: Exception) -> str:
    """Return the file and line that raised."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "unknown place"
    return f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"
