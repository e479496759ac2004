"""Merging a user's part of a manifest into ours, as `kubectl patch` does, without losing what the trial needs.

Mappings are merged; lists of things with a name (containers, volumes, variables, ...) by that name; every other list is
replaced; null removes a field, and `$patch: delete` an item of a list.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.errors import BackendError

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
    """Return the paths of what the first has and the second has not, or otherwise, of what may not be lost."""
    return list(_lost(before, after, ""))


def _lost(before: JsonObject, after: JsonObject, path: str) -> Iterator[str]:
    for key, value in before.items():
        inner = f"{path}.{key}".removeprefix(".")
        found = after.get(key)
        if key in _WHOLE or inner == "metadata.name":
            yield from [] if found == value else [inner]
        elif isinstance(value, Mapping):
            lost_of = _lost_labels if inner.endswith("metadata.labels") else _lost
            yield from lost_of(value, part(after, key), inner)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            lost = _lost_items if key in _BY_NAME else _lost_in_list
            yield from lost(value, found, inner)


def _lost_labels(before: JsonObject, after: JsonObject, path: str) -> Iterator[str]:
    for key, value in before.items():
        if after.get(key) != value:
            yield f"{path}.{key}"


def _lost_items(before: Sequence[JsonValue], after: JsonValue, path: str) -> Iterator[str]:
    key = _BY_NAME[path.rpartition(".")[2]]
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
    """Yield lists whose items have names of their own kind, as task roles have."""
    left = {item.get("name"): item for item in _mappings(after)}
    for item in _mappings(before):
        if "name" in item and item["name"] in left:
            yield from _lost(item, left[item["name"]], f"{path}[{item['name']}]")


def _mappings(items: JsonValue) -> list[JsonObject]:
    found = items if isinstance(items, Sequence) and not isinstance(items, str) else []
    return [item for item in found if isinstance(item, Mapping)]


MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "imagePullSecrets": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort", "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey", "taskRoles": "name", "replicatedJobs": "name",
}  # fmt: skip
_DIRECTIVE = "$patch"


@dataclass(frozen=True, slots=True)
class Patched:
    """A manifest with a patch, and the paths of the fields that had another value before."""

    result: JsonObject
    replaced: tuple[str, ...] = ()


def patched(target: JsonObject, patch: JsonObject, option: str) -> Patched:
    """Merge a patch; neither argument is changed.

    Args:
        target: The manifest, or a part of one.
        patch: What to merge into it.
        option: The name of the option that the patch is, for messages.

    Raises:
        BackendError: It cannot be merged, or removes what the trial needs.
    """
    if not patch:
        return Patched(target)
    merger = _Merger(option)
    result = merger.mapping(target, patch, "")
    if lost := lost_parts(target, result):
        raise BackendError(
            f"`{option}` takes from the trial what it needs: {', '.join(lost[:3])}.",
            "Expected other fields, or further items of a list.",
            f"Remove that from `{option}:`; %autotrain export --yaml shows the whole object.",
        )
    return Patched(result, tuple(merger.replaced))


class _Merger:
    """Merges one patch, and remembers what it replaces."""

    def __init__(self, option: str) -> None:
        self.option = option
        self.replaced: list[str] = []

    def mapping(self, target: JsonObject, patch: JsonObject, path: str) -> dict[str, JsonValue]:
        """Return a mapping with what a patch says of it."""
        result = dict(target)
        for key, wanted in patch.items():
            self._field(result, key, wanted, f"{path}.{key}" if path else key)
        return result

    def _field(self, result: dict[str, JsonValue], key: str, wanted: JsonValue, path: str) -> None:
        before = result.get(key)
        self._check_type(before, wanted, path)
        if wanted is None:
            self._note(path, before)
            result.pop(key, None)
        elif isinstance(wanted, Mapping):
            inner = before if isinstance(before, Mapping) else {}
            result[key] = self.mapping(inner, wanted, path)
        elif isinstance(wanted, Sequence) and not isinstance(wanted, str) and key in MERGE_KEYS:
            items = before if isinstance(before, list) else []
            result[key] = self._items(items, wanted, MERGE_KEYS[key], path)
        else:
            if before != wanted:
                self._note(path, before)
            result[key] = copy.deepcopy(wanted)

    def _check_type(self, before: JsonValue, wanted: JsonValue, path: str) -> None:
        """Refuse another thing in the place of a mapping or a list; the cluster knows the types of values."""
        for is_of, expected in ((_is_mapping, "a mapping"), (_is_list, "a list")):
            if is_of(before) and not is_of(wanted) and wanted is not None:
                raise BackendError(
                    f"`{self.option}`: {path} is {_shown(wanted)}.",
                    f"Expected {expected}, which it is merged into.",
                    f"Change {path} in `{self.option}:`; `--dry-run` shows the whole object.",
                )

    def _note(self, path: str, before: JsonValue) -> None:
        if before is not None:
            self.replaced.append(path)

    def _items(self, target: Sequence[JsonValue], patch: Sequence[JsonValue], key: str, path: str) -> list[JsonValue]:
        result = list(target)
        for number, wanted in enumerate(patch):
            name = self._name(wanted, key, f"{path}[{number}]", target)
            place = _place(result, key, name)
            inner = f"{path}[{name}]"
            content = {one: value for one, value in cast("JsonObject", wanted).items() if one != _DIRECTIVE}
            if cast("JsonObject", wanted).get(_DIRECTIVE) == "delete":
                result = [item for item in result if not _has(item, key, name)]
                self.replaced += [inner] if place is not None else []
            elif place is None:
                result.append(self.mapping({}, content, inner))
            else:
                result[place] = self.mapping(cast("JsonObject", result[place]), content, inner)
        return result

    def _name(self, wanted: JsonValue, key: str, path: str, target: Sequence[JsonValue]) -> JsonValue:
        if isinstance(wanted, Mapping) and wanted.get(key) is not None:
            return wanted[key]
        names = ", ".join(map(str, _names(target, key)))
        known = f" (there are {names})" if names else ""
        raise BackendError(
            f"`{self.option}`: {path} has no {key}.",
            f"Expected a mapping with {key}, by which it is merged{known}.",
            f"Add `{key}: ...` there.",
        )


def _place(target: Sequence[JsonValue], key: str, name: JsonValue) -> int | None:
    """Return the place of the item of this name; None where there is none."""
    return next((at for at, item in enumerate(target) if _has(item, key, name)), None)


def _is_mapping(value: JsonValue) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _shown(value: JsonValue) -> str:
    from jupyter_autotrain.header.document import shown  # noqa: PLC0415 - pydantic is slow and large; few have faults

    return shown(value)


def _names(items: Sequence[JsonValue], key: str) -> Iterator[JsonValue]:
    for item in items:
        if isinstance(item, Mapping) and key in item:
            yield item[key]


def _has(item: JsonValue, key: str, name: JsonValue) -> bool:
    return isinstance(item, Mapping) and item.get(key) == name
