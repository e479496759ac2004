"""Attributes of definitions that are set after their statements: `Net.seen = ...`, `step.__defaults__ = ...`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jupyter_autotrain.capture.definitions.class_state import DELETED
from jupyter_autotrain.capture.definitions.reproducible import can_be_written
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.history import Binding
from jupyter_autotrain.capture.values import unpicklable
from jupyter_autotrain.capture.values.by_value import has_cached
from jupyter_autotrain.capture.values.data import Pickled


def items(found: Iterable[tuple[str, object]], binding: Binding) -> tuple[dict[str, Item], list[Difference]]:
    """One item for each attribute, by the path to it; what cannot travel is made again in the trial, and reported."""
    made: dict[str, Item] = {}
    differences: list[Difference] = []
    for path, value in found:
        if why := next((why for _, why in unpicklable.find(path, value)), ""):
            differences += recreated_in_trial(path, why, binding)
        else:
            made[path] = item(path, value, binding)
    return made, differences


def item(path: str, value: object, binding: Binding) -> Item:
    """The statement that gives a definition an attribute, or takes it away.

    Args:
        path: How to reach it, such as `Net.seen`.
        value: What it is now, or `DELETED`.
        binding: The statement of the definition.
    """
    eager = owners([path])
    if value is DELETED:
        return Item(path, "source", f"del {path}", binding.label, position=binding.position, eager=eager)
    if can_be_written(value):
        return Item(path, "source", f"{path} = {value!r}", binding.label, position=binding.position, eager=eager)
    return Item(path, "data", origin=binding.label, position=binding.position, eager=eager)


def recreated_in_trial(path: str, why: str, binding: Binding) -> list[Difference]:
    """The difference of an attribute that cannot travel, so that the trial makes it again; none for locks."""
    if why == "a lock":
        return []
    return [
        Difference(DifferenceKind.NOT_CARRIED, f"{path} is made again by its statement, being {why}", binding.label)
    ]


def caches(path: str, value: object) -> Iterator[str]:
    """The functions among a definition and its attributes that remember results of earlier calls."""
    if has_cached(value):
        yield path
    for name, part in vars(value).items() if isinstance(value, type) else ():
        if has_cached(part):
            yield f"{path}.{name}"


def emptied(items: Mapping[str, Item], live: Mapping[str, object], pickles: Mapping[str, Pickled]) -> list[Difference]:
    """The differences of functions that cache results: a trial computes them again."""
    found = {name for pickled in pickles.values() for name in pickled.emptied}
    defined = [name for name, item in items.items() if item.how == "source" and name in live]
    found = found.union(*(caches(name, live[name]) for name in defined))
    return [
        Difference(DifferenceKind.NOT_CARRIED, f"what {name} has cached; a trial computes it again")
        for name in sorted(found)
    ]


def owners(names: Iterable[str]) -> frozenset[str]:
    """The definitions that these attributes belong to; a name without a dot is no attribute."""
    return frozenset(name.partition(".")[0] for name in names if "." in name)
