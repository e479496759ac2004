"""The volumes of a pod, as options name them, and where its container has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

from jupyter_autotrain.core.json import JsonObject, JsonValue

SHARED_MEMORY = "shared-memory"
STORAGE = "storage"
_MEBIBYTE = 1 << 20


def mebibytes(size_bytes: float) -> str:
    """A size as manifests have it, rounded up."""
    return f"{math.ceil(size_bytes / _MEBIBYTE)}Mi"


def shared_memory(options: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """The volume of /dev/shm and its mount; none where no size is given."""
    size_bytes = options.get("shared_memory")
    if not isinstance(size_bytes, int | float):
        return [], []
    source: JsonObject = {"medium": "Memory", "sizeLimit": mebibytes(size_bytes)}
    return [{"name": SHARED_MEMORY, "emptyDir": source}], [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}]  # noqa: S108 - where Linux has it


def user_volumes(options: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """The volumes that a user names, and their mounts."""
    volumes: list[JsonObject] = []
    mounts: list[JsonObject] = []
    for number, given in enumerate(cast("list[JsonObject]", options.get("volumes") or []), 1):
        name = f"volume-{number}"
        volumes.append({"name": name, **_source(given)})
        mounts.append(_mount(name, given))
    return volumes, mounts


def storage_volume(options: JsonObject) -> JsonObject | None:
    """The volume of the storage, called `STORAGE`; None where it is no volume (S3, HTTP) or there is none."""
    storage = options.get("storage")
    source = _source(storage) if isinstance(storage, Mapping) else {}
    return {"name": STORAGE, **source} if source else None


def storage_mount(options: JsonObject, path: str) -> JsonObject:
    """The mount of `storage_volume`.

    Args:
        options: Of the profile, with a storage that is a volume.
        path: Where the container finds it.
    """
    return _mount(STORAGE, {**cast("JsonObject", options["storage"]), "path": path})


def _mount(name: str, given: JsonObject) -> JsonObject:
    mount: dict[str, JsonValue] = {"name": name, "mountPath": given["path"]}
    if given.get("sub_path"):
        mount["subPath"] = given["sub_path"]
    if given.get("read_only"):
        mount["readOnly"] = True
    return mount


def _source(given: JsonObject) -> JsonObject:
    """What a volume is of: the one of its kinds that is given."""
    for kind, source in _SOURCES.items():
        if given.get(kind) is not None:
            return source(cast("JsonObject", given[kind]))
    return {}


def _empty(given: JsonObject) -> JsonObject:
    found: dict[str, JsonValue] = {}
    if given.get("medium") == "memory":
        found["medium"] = "Memory"
    if isinstance(size_bytes := given.get("size"), int | float):
        found["sizeLimit"] = mebibytes(size_bytes)
    return {"emptyDir": found}


def _azure(given: JsonObject) -> JsonObject:
    return {"azureFile": {"shareName": given["share"], "secretName": given["secret"]}}


_SOURCES: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "pvc": lambda name: {"persistentVolumeClaim": {"claimName": name}},
    "nfs": lambda given: {"nfs": {"server": given["server"], "path": given["path"]}},
    "host_path": lambda path: {"hostPath": {"path": path}},
    "empty_dir": _empty,
    "secret": lambda name: {"secret": {"secretName": name}},
    "config_map": lambda name: {"configMap": {"name": name}},
    "azure_file": _azure,
}
