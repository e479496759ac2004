"""Looking at objects of the notebook: their own code may run meanwhile, and raise anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

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
    """Return what an instance stores under names; nothing of it is run."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 - it has none, or a property of this name
        return {}
    return found if isinstance(found, dict) else {}


def items(value: object) -> Iterator[tuple[object, object]]:
    """Yield what a mapping holds, as far as it can be read; nothing for other values."""
    try:
        if isinstance(value, dict):
            yield from dict.items(value)
        elif is_kind(value, Mapping):
            yield from value.items()  # type: ignore[attr-defined]  # a mapping
    except Exception:  # noqa: BLE001 - the mapping is the user's, and so is its code
        return


def elements(value: object) -> Iterator[object]:
    """Yield what a list, a tuple, a set or a deque holds; nothing for other values, and nothing of theirs is run."""
    for kind in _SEQUENCES:
        if is_kind(value, kind):
            yield from kind.__iter__(value)  # type: ignore[attr-defined]  # each has it
