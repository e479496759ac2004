"""Names that travel as data: why one cannot, and why its value may not be what the notebook's text gives now."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.codes import code_names
from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, History

_ASK_A_PERSON = frozenset({"breakpoint", "input"})


def kernel_only(name: str, value: object, *, is_bound: bool) -> str:
    """Return the reason why a name without source and import cannot travel; "" when it may be data."""
    if not is_bound or name == "get_ipython":
        return "a part of IPython, which trials do not have"
    if looking.is_kind(value, types.ModuleType):
        return "a module that exists only in this kernel's memory"
    if type(value) is types.FunctionType and "get_ipython" in code_names(value.__code__):
        return "a function with IPython's own syntax (% or !): write these lines as plain Python"
    return ""


def waiting_for_input(called: Collection[str], bound: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the called builtins that wait for input, and the reason why a trial cannot call them."""
    for name in sorted(_ASK_A_PERSON.intersection(called).difference(bound)):
        yield name, "it waits for input, and a trial has no user"


def stale(value: object, binding: Binding | None, history: History) -> str:
    """Return the reason why a value is stale; "" when it is not.

    Its class was defined again, or its origin has changed.
    """
    kind = type(value)
    if kind.__module__ == history.home and history.values.get(kind.__name__, kind) is not kind:
        return f"an instance of an older {kind.__name__}"
    if binding is None or binding.kind is not BindingKind.OTHER:
        return ""
    for used in sorted(history.names_of(binding).eager - {binding.name}):
        if why := history.changed_since(used, binding.position):
            return f"made before {why}"
    return ""


def mark_rebound(items: Mapping[str, Item], history: History) -> None:
    """Mark data that a captured function was written with, and that a later cell bound again."""
    for item in items.values():
        for name in item.deferred if item.how == "source" else ():
            used = items.get(name)
            if used is None or used.how != "data" or used.stale or not history.last(name, item.position):
                continue
            if why := history.changed_since(name, item.position):
                used.stale = f"{why} after {item.name} ({item.origin})"
