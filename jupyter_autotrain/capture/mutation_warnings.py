"""Captured objects that the cell changes in place: the trial changes copies, the notebook's own stay as they were."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.mutations import Mutations

_SHOWN = 6
_UNCHANGEABLE = (int, float, complex, str, bytes, tuple, frozenset, range, type, type(None))


def find(
    code: ast.Module, items: Iterable[Item], namespace: Mapping[str, object], returns: Collection[str]
) -> list[Difference]:
    """One difference that names all captured variables that the cell changes; empty where there are none.

    Found by reading the code: a change behind another name, or inside a library, is not seen.

    Args:
        code: The cell's own code.
        items: What was captured.
        namespace: The notebook's globals.
        returns: Names that come back anyway.
    """
    items = list(items)
    written = [ast.parse(item.text) for item in items if item.how == "source"]
    values = {item.name: namespace.get(item.name) for item in items if item.how == "data"}
    changed = {name for name in Mutations(code, written, namespace).names() if _can_change(name, values)}
    changed |= _trained([values[name] for name in changed], values)
    names = sorted(changed - set(returns))
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [Difference(DifferenceKind.COPIED, f"{', '.join(names[:_SHOWN])}{more}: {_meaning(one=len(names) == 1)}")]


def _meaning(*, one: bool) -> str:
    if one:
        return "the trial changes a copy; this one here stays as it is (`returns:` brings it back)"
    return "the trial changes copies; these here stay as they are (`returns:` brings them back)"


def _can_change(name: str, values: Mapping[str, object]) -> bool:
    return name in values and not looking.is_kind(values[name], _UNCHANGEABLE)


def _trained(changed: Iterable[object], values: Mapping[str, object]) -> set[str]:
    """Models whose parameters a changed optimizer holds."""
    groups = [group for value in changed for group in _groups(value)]
    held = {id(parameter) for group in groups for parameter in group.get("params", ())}
    return {name for name, value in values.items() if not held.isdisjoint(_parameters(value))}


def _groups(optimizer: object) -> list[dict[str, list[object]]]:
    found = looking.own_attributes(optimizer).get("param_groups")
    return found if isinstance(found, list) else []


def _parameters(module: object) -> Iterator[int]:
    """The identities of a PyTorch module's parameters, read from its own dictionaries."""
    own = looking.own_attributes(module)
    yield from (id(parameter) for _, parameter in looking.items(own.get("_parameters")))
    for _, inner in looking.items(own.get("_modules")):
        yield from _parameters(inner)
