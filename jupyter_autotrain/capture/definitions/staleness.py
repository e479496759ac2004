"""Data that is not what the notebook, read from top to bottom, would give now."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, History


def reason(value: object, binding: Binding | None, namespace: Mapping[str, object], history: History) -> str:
    """Why a value is stale: its class was defined again, or what it was made from has changed; "" when it is not."""
    kind = type(value)
    home = str(namespace.get("__name__", "__main__"))
    if kind.__module__ == home and namespace.get(kind.__name__, kind) is not kind:
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
