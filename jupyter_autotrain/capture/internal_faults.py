"""Exceptions that no part of the capture foresees, told as refusals that name the object.

Objects of a notebook run code of anybody's when they are looked at (`__getattr__`, `__eq__`, `__reduce__`). What that
code raises must neither show a traceback of the framework nor send a script that is wrong.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from jupyter_autotrain.capture import looking
from jupyter_autotrain.errors import AutotrainError, CaptureError

_PACKAGE = Path(__file__).parents[1]


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
        said = f"{type(error).__name__}: {looking.words_of(error)}"
        what = f"`{name}`" if name else "this cell"
        way = f"Make {what} anew inside the cell, or leave it out" if name else "Leave out one line after the other"
        raise CaptureError(
            f"Capturing {what} failed inside the capture: {said} ({_place(error)}).",
            "Every object either travels or is refused for a reason of its own; this is a fault of jupyter_autotrain.",
            f"{way}; please report these lines with the object's type.",
        ) from error


def _place(error: Exception) -> str:
    """Return the last of our own lines that was reached."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "unknown place"
