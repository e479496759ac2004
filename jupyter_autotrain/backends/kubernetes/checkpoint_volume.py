"""A volume for what one trial saves, where pods end and others go on. It is claimed with the job, and ends with it."""

from __future__ import annotations

import math

from jupyter_autotrain.backends.kubernetes.objects import items, number, part, text
from jupyter_autotrain.backends.kubernetes.workload import WorkloadRequest
from jupyter_autotrain.core.json import JsonObject

MOUNT_PATH = "/autotrain/storage"  # as the volume of `storage:`, which it takes the place of
_VOLUME = "autotrain-checkpoint"
_VOLUMES = ("pvc", "nfs", "host_path", "azure_file")
_SIZE_BYTES = 1 << 30
_MEBIBYTE = 1 << 20


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
    metadata = {"name": request.name, "namespace": request.namespace, "labels": dict(request.labels)}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}  # type: ignore[dict-item] # JSON


def with_claim(template: JsonObject, name: str) -> JsonObject:
    """The template with that volume in its first container."""
    spec = part(template, "spec")
    first, *others = items(spec, "containers")
    mount: JsonObject = {"name": _VOLUME, "mountPath": MOUNT_PATH}
    volume: JsonObject = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": name}}
    first = {**first, "volumeMounts": [*items(first, "volumeMounts"), mount]}
    changed = {**spec, "containers": [first, *others], "volumes": [*items(spec, "volumes"), volume]}
    return {**template, "spec": changed}
