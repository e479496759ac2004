"""Objects that are made suspended, so that the pods of a trial on several nodes begin together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from jupyter_autotrain.backends.kubernetes.objects.fields import part, text
from jupyter_autotrain.backends.kubernetes.reasons import queue_reasons
from jupyter_autotrain.core.json import JsonObject

_SUSPEND_PATHS: Final = {
    "Job": ("spec", "suspend"), "TrainJob": ("spec", "suspend"), "PyTorchJob": ("spec", "runPolicy", "suspend"),
    "MPIJob": ("spec", "runPolicy", "suspend"), "TFJob": ("spec", "runPolicy", "suspend"),
    "PaddleJob": ("spec", "runPolicy", "suspend"),
}  # fmt: skip


def as_gang(manifest: JsonObject, nodes: int) -> JsonObject:
    """The object of a trial on several nodes, made suspended; as it is where its kind cannot be.

    Args:
        manifest: The object.
        nodes: With how many pods it starts.
    """
    path = _SUSPEND_PATHS.get(text(manifest, "kind"))
    if nodes < 2 or path is None:
        return manifest
    metadata = part(manifest, "metadata")
    annotations = {**part(metadata, "annotations"), queue_reasons.GANG: str(nodes)}
    named = {**manifest, "metadata": {**metadata, "annotations": annotations}}
    return _with(named, path, value=True)


def suspend_patch(kind: str, *, suspended: bool) -> JsonObject:
    """The merge patch that suspends or resumes an object.

    Args:
        kind: Of the object.
        suspended: Whether it is to have no pods.
    """
    return _with({}, _SUSPEND_PATHS[kind], value=suspended)


def _with(found: JsonObject, path: Sequence[str], *, value: bool) -> JsonObject:
    name, *rest = path
    inner = _with(cast("JsonObject", found.get(name) or {}), rest, value=value) if rest else value
    return {**found, name: inner}
