"""What a manifest may not lose to a patch: the object's own name, our labels, and what our containers run and see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jupyter_autotrain.core.json import JsonObject, JsonValue

OWN_VARIABLES = ("AUTOTRAIN_", "JUPYTER_AUTOTRAIN_")
_WHOLE = ("apiVersion", "kind", "command", "args", "envFrom", "generateName", "namespace")
_BY_NAME = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}


def lost_parts(before: JsonObject, after: JsonObject) -> list[str]:
    """The paths of what the first has and the second has not, or otherwise, of what may not be lost."""
    return list(_lost(before, after, ""))


def _lost(before: JsonObject, after: JsonObject, path: str) -> Iterator[str]:
    for key, value in before.items():
        inner = f"{path}.{key}" if path else key
        found = after.get(key)
        if key in _WHOLE or (key == "name" and path == "metadata"):
            if found != value:
                yield inner
        elif key == "labels" and path.endswith("metadata") and isinstance(value, Mapping):
            yield from _lost_labels(value, found, inner)
        elif key in _BY_NAME and isinstance(value, Sequence) and not isinstance(value, str):
            yield from _lost_items(value, found, _BY_NAME[key], inner)
        elif isinstance(value, Mapping):
            yield from _lost(value, found if isinstance(found, Mapping) else {}, inner)
        elif isinstance(value, list):
            yield from _lost_in_list(value, found, inner)


def _lost_labels(before: JsonObject, after: JsonValue, path: str) -> Iterator[str]:
    left = after if isinstance(after, Mapping) else {}
    for key, value in before.items():
        if left.get(key) != value:
            yield f"{path}.{key}"


def _lost_items(before: Sequence[JsonValue], after: JsonValue, key: str, path: str) -> Iterator[str]:
    left = {item.get(key): item for item in _mappings(after)}
    for item in _mappings(before):
        name = item.get(key)
        inner = f"{path}[{name}]"
        if path.endswith(".env"):
            if str(name).startswith(OWN_VARIABLES) and left.get(name) != item:
                yield inner
        elif name not in left:
            yield inner
        else:
            yield from _lost(item, left[name], inner)


def _lost_in_list(before: Sequence[JsonValue], after: JsonValue, path: str) -> Iterator[str]:
    """Lists whose items have names of their own kind, as task roles have."""
    left = {item.get("name"): item for item in _mappings(after)}
    for item in _mappings(before):
        if "name" in item and item["name"] in left:
            yield from _lost(item, left[item["name"]], f"{path}[{item['name']}]")


def _mappings(items: JsonValue) -> list[JsonObject]:
    found = items if isinstance(items, Sequence) and not isinstance(items, str) else []
    return [item for item in found if isinstance(item, Mapping)]
