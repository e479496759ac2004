"""The volumes of a pod: as options name them, folders that a container mounts, and one to keep a trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import main_container, unexpanded
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadRequest

SHARED_MEMORY = "shared-memory"
STORAGE = "storage"
_MEBIBYTE = 1 << 20


def mebibytes(size_bytes: float) -> str:
    """Return a size as manifests have it, rounded up."""
    return f"{math.ceil(size_bytes / _MEBIBYTE)}Mi"


def shared_memory(options: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the volume of /dev/shm and its mount; none where no size is given."""
    size_bytes = options.get("shared_memory")
    if not isinstance(size_bytes, int | float):
        return [], []
    source: JsonObject = {"medium": "Memory", "sizeLimit": mebibytes(size_bytes)}
    return [{"name": SHARED_MEMORY, "emptyDir": source}], [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}]  # noqa: S108 - where Linux has it


def user_volumes(options: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the volumes that a user names, and their mounts."""
    volumes: list[JsonObject] = []
    mounts: list[JsonObject] = []
    for index, given in enumerate(cast("list[JsonObject]", options.get("volumes") or []), 1):
        name = f"volume-{index}"
        volumes.append({"name": name, **_source(given)})
        mounts.append(_mount(name, given))
    return volumes, mounts


def storage_volume(options: JsonObject) -> JsonObject | None:
    """Return the volume of the storage, called `STORAGE`; None where it is no volume (S3, HTTP) or there is none."""
    storage = options.get("storage")
    source = _source(storage) if isinstance(storage, Mapping) else {}
    return {"name": STORAGE, **source} if source else None


def storage_mount(options: JsonObject, path: str) -> JsonObject:
    """Return the mount of `storage_volume`.

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
    """Return what a volume is of: the one of its kinds that is given."""
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


_NAME = "autotrain-folders"
_RESOURCES: Final = {"cpu": "100m", "memory": "64Mi"}
_MAKE = f"""
import os, sys
for path in sys.argv[1:]:
    here = {places.STORAGE!r}
    for name in path.split("/"):
        mode = os.stat(here).st_mode & 0o7777
        here += "/" + name
        try:
            os.mkdir(here)
            os.chmod(here, mode)
        except FileExistsError:
            pass
        except OSError as error:
            sys.exit("The volume of `storage:` has no " + here[len({places.STORAGE!r}):] + ", and user "
                     + str(os.getuid()) + " of the container cannot make it: " + str(error.strerror))
"""


def with_volume_folders(template: JsonObject, volume: str, env: Sequence[JsonObject] = ()) -> JsonObject:
    """Return the template with an init container that makes the parts of a volume which its main container mounts.

    Args:
        template: The pod template; one that has such a container already gets another.
        volume: The name of the volume.
        env: The variables that are named in `subPathExpr`, where its controller sets them in main containers alone.
    """
    plain = without_volume_folders(template)
    first = main_container(plain)
    mounts = [mount for mount in items(first, "volumeMounts") if mount.get("name") == volume]
    folders = [unexpanded(text(mount, "subPath")) or text(mount, "subPathExpr") for mount in mounts]
    named = list(dict.fromkeys(filter(None, folders)))
    return _with_init(plain, [*_init_containers(plain), _maker(first, volume, named, env)]) if named else plain


def without_volume_folders(template: JsonObject) -> JsonObject:
    """Return the template without that init container."""
    others = [one for one in _init_containers(template) if one.get("name") != _NAME]
    return _with_init(template, others) if len(others) < len(_init_containers(template)) else template


def _maker(first: JsonObject, volume: str, folders: Sequence[str], env: Sequence[JsonObject]) -> JsonObject:
    python = str(_texts(first, "command")[0])
    found: dict[str, JsonValue] = {
        "name": _NAME, "image": first["image"], "command": [python, "-I", "-S", "-c", _MAKE], "args": list(folders),
        "volumeMounts": [{"name": volume, "mountPath": places.STORAGE}], "env": list(env),
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES}, "imagePullPolicy": first.get("imagePullPolicy"),
        "securityContext": part(first, "securityContext"), "terminationMessagePolicy": "FallbackToLogsOnError",
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _texts(found: JsonObject, name: str) -> Sequence[JsonValue]:
    value = found.get(name)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ["python3"]


def _init_containers(template: JsonObject) -> list[JsonObject]:
    return items(template, "spec", "initContainers")


def _with_init(template: JsonObject, containers: Sequence[JsonObject]) -> JsonObject:
    spec: dict[str, JsonValue] = {**part(template, "spec"), "initContainers": list(containers)}
    if not containers:
        del spec["initContainers"]
    return {**template, "spec": spec}


_CHECKPOINTS = f"{places.TRIAL_DIRECTORY}/{wire.CHECKPOINTS}"  # all nodes of a trial have the same
_VOLUME = "autotrain-checkpoint"
_VOLUMES = ("pvc", "nfs", "host_path", "azure_file")
_SIZE_BYTES = 1 << 30

_OF_ATTEMPT = (naming.LABEL_HOME, naming.LABEL_EXPERIMENT, naming.LABEL_TRIAL, naming.LABEL_ATTEMPT)


def has_volume(options: JsonObject) -> bool:
    """Return whether `storage:` is a volume that pods mount, one after another or together."""
    return any(map(part(options, "storage").get, _VOLUMES))


def claim(request: WorkloadRequest, *, is_shared: bool) -> JsonObject:
    """Return the claim of the volume of a trial.

    Args:
        request: The trial.
        is_shared: Whether pods on several nodes have it at the same time.
    """
    options = part(request.options, "checkpoint")
    size = math.ceil((number(options, "size") or _SIZE_BYTES) / _MEBIBYTE)
    spec: dict[str, object] = {
        "accessModes": ["ReadWriteMany" if is_shared else "ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{size}Mi"}},
    }
    if text(options, "storage_class"):
        spec["storageClassName"] = text(options, "storage_class")
    kind = "PersistentVolumeClaim"
    return {"apiVersion": "v1", "kind": kind, "metadata": request.metadata(), "spec": spec}  # type: ignore[dict-item] # JSON


def is_kept(options: JsonObject) -> bool:
    """Return whether what a pod has made outlives it."""
    return options.get("checkpoint") is not None or has_volume(options)


def with_kept_folder(
    template: JsonObject, request: WorkloadRequest, node: str, env: Sequence[JsonObject] = ()
) -> JsonObject:
    """Return the template with the folder of everything that a pod makes on a volume, one for each node.

    Args:
        template: With a folder that ends with its pod, or with one that is kept already.
        request: The trial.
        node: The node's name in that folder, with `$(VARIABLE)` of the container.
        env: Those variables, where the controller sets them in main containers alone.
    """
    volume, prefix = _kept_volume(request)
    above = f"{prefix}/" if prefix else ""
    home, experiment, number, attempt = (request.labels[label] for label in _OF_ATTEMPT)
    whole = places.EXPERIMENTS.removeprefix(f"{places.STORAGE}/")
    folder = f"{above}{whole}/{places.attempt(home, experiment, number, attempt)}"
    of_node = f"{unexpanded(folder)}/{node}"
    wanted: list[JsonObject] = [
        _kept_mount(volume, places.STORAGE, {"subPath": prefix} if prefix else {}),
        _kept_mount(volume, places.RUN, {"subPathExpr": of_node}),
        _kept_mount(volume, places.TRIAL_DIRECTORY, {"subPathExpr": f"{of_node}/{places.TRIAL}"}),  # not made by root
        _kept_mount(volume, _CHECKPOINTS, {"subPath": f"{folder}/{wire.CHECKPOINTS}"}),
    ]
    spec = part(template, "spec")
    first, *others = items(spec, "containers")
    paths = {text(mount, "mountPath") for mount in wanted}
    kept = [mount for mount in items(first, "volumeMounts") if mount.get("mountPath") not in paths]
    replaced = {text(volume, "name"), *_unused(first, kept)}
    named = [one for one in items(spec, "volumes") if text(one, "name") not in replaced]
    changed = {"containers": [{**first, "volumeMounts": [*kept, *wanted]}, *others], "volumes": [*named, volume]}
    return with_volume_folders({**template, "spec": {**spec, **changed}}, str(volume["name"]), env)


def _kept_volume(request: WorkloadRequest) -> tuple[JsonObject, str]:
    """Return the volume that keeps a trial, that of the profile or the trial's own, and the folder in it."""
    shared = storage_volume(request.options)
    if shared is not None:
        return shared, text(request.options, "storage", "sub_path")
    return {"name": _VOLUME, "persistentVolumeClaim": {"claimName": request.name}}, ""


def _kept_mount(volume: JsonObject, path: str, more: JsonObject) -> JsonObject:
    return {"name": volume["name"], "mountPath": path, **more}


def _unused(container: JsonObject, kept: Sequence[JsonObject]) -> set[str]:
    """Return the volumes that are mounted no longer."""
    before = {text(mount, "name") for mount in items(container, "volumeMounts")}
    return before - {text(mount, "name") for mount in kept}
