"""Merge patches and strategic ones; JSON patches are refused, as nobody sends them."""

from __future__ import annotations

import copy
from typing import Any

from tests.labs.kubernetes.objects.errors import bad_request
from tests.labs.kubernetes.objects.values import Json

MERGE_PATCH = "merge"
STRATEGIC_PATCH = "strategic"
_MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "imagePullSecrets": "name", "hostAliases": "ip",
    "conditions": "type", "ownerReferences": "uid", "topologySpreadConstraints": "topologyKey", "secrets": "name",
    "containerStatuses": "name", "resourceClaims": "name", "addresses": "type",
}  # fmt: skip
_PRIMITIVE_SETS = ("finalizers",)


def apply(found: Json, patch: Any, patch_type: str) -> Json:
    """Return an object as a patch changes it; the given one stays as it is.

    Raises:
        ApiError: 400: The patch cannot be applied.
    """
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map")
    merged = _strategic(found, patch) if patch_type == STRATEGIC_PATCH else merge(found, patch)
    assert isinstance(merged, dict)
    return merged


def merge(found: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(found) if isinstance(found, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _strategic(found: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(found, dict):
        return merge(found, patch)
    if patch.get("$patch") == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != "$patch"}
    merged = dict(found)
    for key, value in patch.items():
        if not key.startswith("$"):
            _strategic_field(merged, key, value)
    for key in patch:
        if key.startswith("$deleteFromPrimitiveList/"):
            _remove_values(merged, key.split("/", 1)[1], patch[key])
    return merged


def _strategic_field(merged: Json, key: str, value: Any) -> None:
    present = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif key in _PRIMITIVE_SETS and isinstance(present, list):
        merged[key] = present + [item for item in value if item not in present]
    elif isinstance(value, list) and isinstance(present, list) and _merge_key(key, value):
        merged[key] = _merge_lists(present, value, _merge_key(key, value))
    else:
        merged[key] = _strategic(present, value)


def _merge_key(key: str, items: list[Any]) -> str:
    if key == "ports":
        return "containerPort" if all("containerPort" in item for item in items) else "port"
    return _MERGE_KEYS.get(key, "")


def _remove_values(merged: Json, key: str, values: list[Any]) -> None:
    merged[key] = [item for item in merged.get(key, []) if item not in values]


def _merge_lists(present: list[Json], items: list[Json], key: str) -> list[Json]:
    merged = list(present)
    for item in items:
        if item.get("$patch") == "replace":
            return [copy.deepcopy(other) for other in items if "$patch" not in other]
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        places = [index for index, other in enumerate(merged) if other.get(key) == item[key]]
        if item.get("$patch") == "delete":
            merged = [other for other in merged if other.get(key) != item[key]]
        elif places:
            merged[places[0]] = _strategic(merged[places[0]], item)
        else:
            merged.append(copy.deepcopy(item))
    return merged
