"""The three kinds of patches."""

from __future__ import annotations

import copy
from typing import Any

from jupyter_autotrain.testing.kubernetes.objects.errors import ApiError, bad_request
from jupyter_autotrain.testing.kubernetes.objects.values import Json

JSON_PATCH = "json"
MERGE_PATCH = "merge"
STRATEGIC_PATCH = "strategic"
_MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "imagePullSecrets": "name", "hostAliases": "ip",
    "conditions": "type", "ownerReferences": "uid", "topologySpreadConstraints": "topologyKey", "secrets": "name",
    "containerStatuses": "name", "resourceClaims": "name", "addresses": "type",
}  # fmt: skip
_PRIMITIVE_SETS = ("finalizers",)


def apply(found: Json, patch: Any, patch_type: str) -> Json:  # noqa: ANN401 (a JSON value: a list or an object)
    """An object as a patch changes it; the given one stays as it is.

    Raises:
        ApiError: 400, 415 or 422: The patch cannot be applied.
    """
    if patch_type == JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
            )
        return _json_patch(found, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map")
    merged = _strategic(found, patch) if patch_type == STRATEGIC_PATCH else merge(found, patch)
    assert isinstance(merged, dict)
    return merged


def merge(found: Any, patch: Any) -> Any:  # noqa: ANN401 (JSON values)
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


def _strategic(found: Any, patch: Any) -> Any:  # noqa: ANN401 (JSON values)
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


def _strategic_field(merged: Json, key: str, value: Any) -> None:  # noqa: ANN401 (a JSON value)
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


def _json_patch(found: Json, patch: list[Json]) -> Json:
    changed = copy.deepcopy(found)
    for step in patch:
        _json_step(changed, step)
    return changed


def _json_step(changed: Json, step: Json) -> None:
    operation = step.get("op")
    path = step.get("path", "")
    if operation == "test":
        if _at(changed, path) != step.get("value"):
            raise _unprocessable(f"testing path {path} failed")
    elif operation == "remove":
        _remove(changed, path)
    elif operation == "replace":
        _at(changed, path)
        _set(changed, path, copy.deepcopy(step.get("value")), insert=False)
    elif operation == "add":
        _set(changed, path, copy.deepcopy(step.get("value")), insert=True)
    elif operation in ("move", "copy"):
        value = copy.deepcopy(_at(changed, step.get("from", "")))
        if operation == "move":
            _remove(changed, step.get("from", ""))
        _set(changed, path, value, insert=True)
    else:
        raise bad_request(f"Unexpected kind: {operation}")


def _unprocessable(why: str) -> ApiError:
    return ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {why}")


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _at(value: Any, path: str) -> Any:  # noqa: ANN401 (JSON values)
    for part in _parts(path):
        value = _member(value, part, path)
    return value


def _member(value: Any, part: str, path: str) -> Any:  # noqa: ANN401 (JSON values)
    try:
        return value[int(part)] if isinstance(value, list) else value[part]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise _unprocessable(f"no value at path {path}") from error


def _parent(value: Any, path: str) -> tuple[Any, str]:  # noqa: ANN401 (JSON values)
    parts = _parts(path)
    if not parts:
        raise _unprocessable("the whole object cannot be replaced")
    for part in parts[:-1]:
        value = _member(value, part, path)
    return value, parts[-1]


def _remove(changed: Json, path: str) -> None:
    _at(changed, path)
    parent, last = _parent(changed, path)
    del parent[int(last) if isinstance(parent, list) else last]


def _set(changed: Json, path: str, value: Any, *, insert: bool) -> None:  # noqa: ANN401 (a JSON value)
    parent, last = _parent(changed, path)
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    elif insert:
        parent.insert(int(last), value)
    else:
        parent[int(last)] = value
