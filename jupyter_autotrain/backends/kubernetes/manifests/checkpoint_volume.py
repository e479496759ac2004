"""A volume for what one trial saves, where pods end and others go on. It is claimed with the job, and ends with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.manifests import volumes
from jupyter_autotrain.backends.kubernetes.manifests.volume_folders import with_volume_folders
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_containers import unexpanded
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadRequest
from jupyter_autotrain.backends.kubernetes_pod import layout, places
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.json import JsonObject

_CHECKPOINTS = f"{places.TRIAL_DIRECTORY}/{wire.CHECKPOINTS}"  # all nodes of a trial have the same
_VOLUME = "autotrain-checkpoint"
_VOLUMES = ("pvc", "nfs", "host_path", "azure_file")
_SIZE_BYTES = 1 << 30
_MEBIBYTE = 1 << 20
_OF_ATTEMPT = (naming.LABEL_HOME, naming.LABEL_EXPERIMENT, naming.LABEL_TRIAL, naming.LABEL_ATTEMPT)


def has_volume(options: JsonObject) -> bool:
    """Whether `storage:` is a volume that pods mount, one after another or together."""
    return any(part(options, "storage").get(kind) for kind in _VOLUMES)


def claim(request: WorkloadRequest, *, is_shared: bool) -> JsonObject:
    """The claim of the volume of a trial.

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
    """Whether what a pod has made outlives it."""
    return options.get("checkpoint") is not None or has_volume(options)


def with_kept_folder(
    template: JsonObject, request: WorkloadRequest, node: str, env: Sequence[JsonObject] = ()
) -> JsonObject:
    """The template with the folder of everything that a pod makes on a volume, one for each node.

    Args:
        template: With a folder that ends with its pod, or with one that is kept already.
        request: The trial.
        node: The node's name in that folder, with `$(VARIABLE)` of the container.
        env: Those variables, where the controller sets them in main containers alone.
    """
    volume = volumes.storage_volume(request.options)
    prefix = text(request.options, "storage", "sub_path") if volume is not None else ""
    if volume is None:
        volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": request.name}}
    above = f"{prefix}/" if prefix else ""
    home, experiment, number, attempt = (request.labels[label] for label in _OF_ATTEMPT)
    whole = layout.EXPERIMENTS.removeprefix(f"{layout.STORAGE}/")
    folder = f"{above}{whole}/{layout.attempt(home, experiment, number, attempt)}"
    of_node = f"{unexpanded(folder)}/{node}"
    wanted: list[JsonObject] = [
        _mount(volume, layout.STORAGE, {"subPath": prefix} if prefix else {}),
        _mount(volume, places.RUN, {"subPathExpr": of_node}),
        _mount(volume, places.TRIAL_DIRECTORY, {"subPathExpr": f"{of_node}/{places.TRIAL}"}),  # not made by root
        _mount(volume, _CHECKPOINTS, {"subPath": f"{folder}/{wire.CHECKPOINTS}"}),
    ]
    spec = part(template, "spec")
    first, *others = items(spec, "containers")
    paths = {text(mount, "mountPath") for mount in wanted}
    kept = [mount for mount in items(first, "volumeMounts") if mount.get("mountPath") not in paths]
    named = [one for one in items(spec, "volumes") if one.get("name") not in {volume["name"], *_unused(first, kept)}]
    changed = {"containers": [{**first, "volumeMounts": [*kept, *wanted]}, *others], "volumes": [*named, volume]}
    return with_volume_folders({**template, "spec": {**spec, **changed}}, str(volume["name"]), env)


def _mount(volume: JsonObject, path: str, more: JsonObject) -> JsonObject:
    return {"name": volume["name"], "mountPath": path, **more}


def _unused(container: JsonObject, kept: Sequence[JsonObject]) -> set[str]:
    """The volumes that are mounted no longer."""
    before = {text(mount, "name") for mount in items(container, "volumeMounts")}
    return before - {text(mount, "name") for mount in kept}
