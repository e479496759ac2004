"""What is in live objects of the notebook, as far as paths are concerned; nothing of theirs is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePath

from jupyter_autotrain.capture.files.path_methods import ANY, MOST

_DEEPEST = 6
Scalar = str | int | float


def scalars(values: Iterable[object], depth: int = 0) -> list[Scalar]:
    """The texts and numbers among values, those in containers too."""
    found: list[Scalar] = []
    for value in islice(values, MOST):
        found += _scalars(value, depth)
        if len(found) >= MOST:
            break
    return list(dict.fromkeys(found))[:MOST]


def _scalars(value: object, depth: int) -> list[Scalar]:
    if isinstance(value, str | PurePath):
        return [str(value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    return scalars(_held(value), depth + 1) if depth < _DEEPEST else []


def _held(value: object) -> Iterable[object]:
    """What a container holds; of a table the texts."""
    if isinstance(value, Mapping):
        return list(islice(value.values(), MOST))
    if isinstance(value, list | tuple | set | frozenset):
        return list(islice(value, MOST))
    kind = type(value).__module__.partition(".")[0]
    if kind == "pandas" and type(value).__name__ == "DataFrame":
        return [value[name] for name in value.columns]  # type: ignore[index,attr-defined] # pandas is not imported here
    if kind in {"numpy", "pandas"} and getattr(getattr(value, "dtype", None), "kind", "") in {"O", "U", "T"}:
        return list(value[:MOST].tolist())  # type: ignore[index] # as above
    return ()


def is_container(value: object) -> bool:
    """Whether a value holds others, which it then stands for."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return True
    return type(value).__module__.partition(".")[0] in {"numpy", "pandas"}


def elements(value: object) -> list[object]:
    """What a loop over a value gives; a text stands for itself."""
    if isinstance(value, Mapping):
        return list(islice(value, MOST))
    return list(islice(value, MOST)) if isinstance(value, list | tuple | set | frozenset) else [value]


def attribute(value: object, name: str) -> list[object]:
    """An attribute of a live object that is stored in it; a column of a table."""
    if isinstance(value, str | PurePath | int | float):
        return []
    if _is_table(value):
        return item(value, name) if name in list(value.columns) else [value]  # type: ignore[attr-defined] # as above
    if is_container(value) and not isinstance(value, Mapping):
        return [value]
    if isinstance(value, Mapping) and name in value:
        return item(value, name)
    stored = getattr(value, "__dict__", None)
    if isinstance(stored, Mapping) and name in stored:
        return [stored[name]]
    of_class = [vars(kind)[name] for kind in type(value).__mro__[:-1] if name in vars(kind)]
    return [one for one in of_class[:1] if isinstance(one, str | PurePath | dict | list | tuple)]


def item(value: object, key: object) -> list[object]:
    """An item of a value: that of a known key, else all that it may be."""
    if isinstance(value, str | PurePath):
        return [ANY]
    if isinstance(value, Mapping) and key is not None:
        found = value.get(key, value.get(None, []))
        return found if isinstance(found, list) else [found]
    if isinstance(value, list | tuple) and isinstance(key, int) and -len(value) <= key < len(value):
        return [value[key]]
    if _is_table(value) and isinstance(key, str) and key in list(value.columns):  # type: ignore[attr-defined] # as above
        return [value[key]]  # type: ignore[index] # as above
    return [value]


def _is_table(value: object) -> bool:
    return type(value).__module__.startswith("pandas.") and hasattr(value, "columns")


def objects(values: Iterable[object], most: int = 2_000) -> Iterator[object]:
    """The values and the objects they hold, outer ones first."""
    todo = list(values)
    seen: set[int] = set()
    while todo and len(seen) < most:
        value = todo.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        stored = getattr(value, "__dict__", None)
        if isinstance(stored, dict) and not isinstance(value, type):
            todo += list(islice(stored.values(), 100))
        elif isinstance(value, dict | list | tuple):
            todo += list(islice(value.values() if isinstance(value, dict) else value, 100))
