"""What is in live objects of the notebook, as far as paths are concerned; nothing of theirs is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import PurePath

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files.path_methods import ANY, MOST

OPEN_FILE = object()
"""Stands for a file that the code has opened: it is no path, but its lines may be."""
_DEEPEST = 6
_SEQUENCES = (list, tuple, set, frozenset)
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
    if looking.is_kind(value, (Mapping, *_SEQUENCES)):
        held = (one for _, one in looking.items(value))
        return islice(chain(held, looking.elements(value)), MOST)
    kind = _package_of(value)
    if kind == "pandas" and type(value).__name__ == "DataFrame":
        return [value[name] for name in value.columns]  # type: ignore[index,attr-defined] # pandas is not imported here
    if kind in {"numpy", "pandas"} and getattr(getattr(value, "dtype", None), "kind", "") in {"O", "U", "T"}:
        return list(value[:MOST].tolist())  # type: ignore[index] # as above
    return ()


def is_container(value: object) -> bool:
    """Whether a value holds others, which it then stands for."""
    return looking.is_kind(value, (Mapping, *_SEQUENCES)) or _package_of(value) in {"numpy", "pandas"}


def _package_of(value: object) -> str:
    return looking.module_of(type(value)).partition(".")[0]


def elements(value: object) -> list[object]:
    """What a loop over a value gives; a text stands for itself."""
    if value is OPEN_FILE:
        return [ANY]
    if looking.is_kind(value, Mapping):
        return [key for key, _ in islice(looking.items(value), MOST)]
    return list(islice(looking.elements(value), MOST)) if looking.is_kind(value, _SEQUENCES) else [value]


def attribute(value: object, name: str) -> list[object]:
    """An attribute of a live object that is stored in it; a column of a table."""
    if looking.is_kind(value, (str, PurePath, int, float)):
        return []
    if _is_table(value):
        return item(value, name) if name in list(value.columns) else [value]  # type: ignore[attr-defined] # as above
    if is_container(value) and not looking.is_kind(value, Mapping):
        return [value]
    if found := [held for key, held in looking.items(value) if key == name]:
        return found
    if name in (stored := looking.own_attributes(value)):
        return [stored[name]]
    of_class = [vars(kind)[name] for kind in type(value).__mro__[:-1] if name in vars(kind)]
    return [one for one in of_class[:1] if isinstance(one, str | PurePath | dict | list | tuple)]


def item(value: object, key: object) -> list[object]:
    """An item of a value: that of a known key, else all that it may be."""
    if isinstance(value, str | PurePath):
        return [ANY]
    if looking.is_kind(value, Mapping) and key is not None:
        held = dict(looking.items(value))
        found = held.get(key, held.get(None, []))
        return found if isinstance(found, list) else [found]
    if isinstance(value, list | tuple) and isinstance(key, int) and -len(value) <= key < len(value):
        return [value[key]]
    if _is_table(value) and isinstance(key, str) and key in list(value.columns):  # type: ignore[attr-defined] # as above
        return [value[key]]  # type: ignore[index] # as above
    return [value]


def _is_table(value: object) -> bool:
    return _package_of(value) == "pandas" and looking.attribute(value, "columns") is not None


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
        if looking.is_kind(value, type):
            continue
        todo += islice(looking.own_attributes(value).values(), 100)
        todo += [held for _, held in islice(looking.items(value), 100)]
        todo += islice(looking.elements(value), 100)
