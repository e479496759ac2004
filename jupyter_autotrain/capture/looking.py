"""Looking at objects of the notebook: their own code may run meanwhile, and raise anything.

What no part of the capture foresees is told as a refusal that names the object: it must neither show a traceback of the
framework nor send a script that is wrong.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from jupyter_autotrain.errors import AutotrainError, CaptureError

LOCKS: tuple[type, ...] = (
    type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore, threading.Event,
    threading.Barrier,
)  # fmt: skip
_SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, deque)


def is_kind(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a value is of one of these classes, whatever it says of itself by `__class__`."""
    try:
        return issubclass(type(value), kinds)
    except Exception:  # noqa: BLE001 - its class has a class of the user's
        return False


def module_of(kind: type) -> str:
    """Return the name of the module that a class says it is from."""
    return str(attribute(kind, "__module__", ""))


def attribute(value: object, name: str, default: object = None) -> object:
    """Return an attribute, or the default where there is none, or where it cannot be read."""
    try:
        return getattr(value, name, default)
    except Exception:  # noqa: BLE001 - the object is the user's, and so is its code
        return default


def words_of(error: BaseException) -> str:
    """Return the first line of what an exception says, else its class."""
    try:
        said = str(error).partition("\n")[0]
    except Exception:  # noqa: BLE001 - the exception is the user's, and so is its code
        said = ""
    return said or type(error).__name__


def own_attributes(value: object) -> dict[str, object]:
    """Return the values that an instance stores under names; nothing of it is run."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 - it has none, or a property of this name
        return {}
    return found if isinstance(found, dict) else {}


def items(value: object) -> Iterator[tuple[object, object]]:
    """Yield the pairs that a mapping holds, as far as they can be read; nothing for other values."""
    try:
        if isinstance(value, dict):
            yield from dict.items(value)
        elif is_kind(value, Mapping):
            yield from value.items()  # type: ignore[attr-defined]  # a mapping
    except Exception:  # noqa: BLE001 - the mapping is the user's, and so is its code
        return


def elements(value: object) -> Iterator[object]:
    """Yield the elements of a list, a tuple, a set or a deque; nothing for other values.

    No code of the elements is run.
    """
    for kind in _SEQUENCES:
        if is_kind(value, kind):
            yield from kind.__iter__(value)  # type: ignore[attr-defined]  # each has it


def parts(value: object) -> Iterator[tuple[str, object, object]]:
    """Yield what a container or an instance holds, each with the step to it, such as `['log']`, and its key or name."""
    for key, item in items(value):
        is_shown = isinstance(key, str | int | float | bytes)
        yield f"[{key!r}]" if is_shown else f"[a {type(key).__name__}]", key, item
    for index, item in enumerate(elements(value)):
        yield f"[{index}]", None, item
    for name, item in [] if is_kind(value, type) else list(own_attributes(value).items()):
        yield f".{name}", name, item


# Exceptions that no part of the capture foresees, told as refusals that name the object


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
        said = f"{type(error).__name__}: {words_of(error)}"
        what = f"`{name}`" if name else "this cell"
        way = f"Make {what} inside the cell, or leave it out" if name else "Leave out one line after the other"
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
