"""The steps of `backends check` for a cluster, before its tiny trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from jupyter_autotrain.backends.kubernetes import permissions
from jupyter_autotrain.backends.kubernetes.cluster_checks import (
    CheckedCluster,
    check_fields,
    check_permissions,
    is_missing,
)
from jupyter_autotrain.backends.kubernetes.pod_template import image_named
from jupyter_autotrain.backends.kubernetes.queue_checks import queue_notes
from jupyter_autotrain.backends.kubernetes.workload import ObjectType
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

_CLAIM = ObjectType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_SECRET = ObjectType("", "v1", "secrets", "Secret")


def check_objects(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> list[str]:
    """Make sure that the cluster would take these objects from this user; gives notes, a line each.

    Raises:
        BackendUnavailableError: It would not; names all that is missing or wrong. Or it does not answer.
    """
    check_permissions(cluster)
    check_fields(cluster.schemas(), objects)
    return queue_notes(cluster)


def check_steps(cluster: CheckedCluster, render: Callable[[], Sequence[JsonObject]]) -> Iterator[CheckStep]:
    """The steps before a trial can run there; ends after the first that fails.

    Args:
        cluster: What is checked.
        render: Gives the objects of a trial.
    """
    timer = StepTimer("")
    steps: Sequence[tuple[str, Callable[[], str]]] = (
        ("reach", lambda: _reach(cluster)),
        ("log in", lambda: _log_in(cluster)),
        ("permissions", lambda: _permitted(cluster)),
        ("kinds", lambda: _served(cluster)),
        ("fields", lambda: _fields(cluster, render)),
        ("queue", lambda: _queue(cluster)),
        ("storage", lambda: _storage(cluster)),
        ("image", lambda: _image(cluster)),
    )
    for name, run in steps:
        timer.begin(name)
        try:
            text = run()
        except AutotrainError as error:
            yield timer.refused(error)
            return
        if text:
            yield timer.done(text)


def _reach(cluster: CheckedCluster) -> str:
    try:
        version = cluster.get("/version").get("gitVersion")
    except BackendUnavailableError:
        raise
    except BackendError as error:
        if getattr(error, "code", None) not in {401, 403}:
            raise
        version = ""  # it answers, if not to everybody
    return f"Kubernetes {version} answers at {cluster.address}"


def _log_in(cluster: CheckedCluster) -> str:
    try:
        body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status = cast("JsonObject", cluster.post(permissions.SELF, body).get("status") or {})
    except BackendError as error:
        if not is_missing(error):
            raise
        return f"logged in, namespace {cluster.namespace}"
    name = cast("JsonObject", status.get("userInfo") or {}).get("username")
    return f"logged in as {name}, namespace {cluster.namespace}"


def _permitted(cluster: CheckedCluster) -> str:
    check_permissions(cluster)
    return f"all {len(permissions.needed(cluster.object_types))} that are needed"


def _served(cluster: CheckedCluster) -> str:
    schemas = cluster.schemas()
    bare: list[JsonObject] = [{"apiVersion": one.api_version, "kind": one.kind} for one in cluster.object_types]
    for found in bare:
        for fault in schemas.faults(found):
            if "is not served" in fault:
                expected = "Expected it to be installed there."
                raise BackendUnavailableError(fault, expected, "Install it, or change `type:`.")
    return ", ".join(f"{one.kind} ({one.api_version})" for one in cluster.object_types) + " served"


def _fields(cluster: CheckedCluster, render: Callable[[], Sequence[JsonObject]]) -> str:
    objects = render()
    check_fields(cluster.schemas(), objects)
    return f"the cluster takes all of {', '.join(str(found['kind']) for found in objects)}"


def _queue(cluster: CheckedCluster) -> str:
    notes = queue_notes(cluster)
    queue = cluster.options.get("queue")
    return "; ".join(notes) or (f"{queue} is there" if queue else "")


def _storage(cluster: CheckedCluster) -> str:
    """What can be said of the storage from here: the claim of a PVC."""
    storage = cluster.options.get("storage")
    if not isinstance(storage, Mapping):
        return "none: code of up to 1 MiB goes by ConfigMaps"
    name = storage.get("pvc")
    if name is None:
        kind = next(str(key) for key in storage if key not in {"sub_path", "local_path"})
        return f"{kind}: the trial shows whether it can be reached from a pod"
    found = _named(cluster, _CLAIM, str(name), "storage:")
    if found is None:
        return f"the PVC {name} could not be asked"
    phase = cast("JsonObject", found.get("status") or {}).get("phase")
    modes = cast("JsonObject", found.get("spec") or {}).get("accessModes")
    return f"the PVC {name} is {phase} ({', '.join(_texts(modes))})"


def _image(cluster: CheckedCluster) -> str:
    """The image, and whether the Secrets with the logins of its registry are there."""
    for name in _texts(cluster.options.get("image_pull_secrets")):
        _named(cluster, _SECRET, name, "image_pull_secrets:")
    return f"{image_named(cluster.options)}: the trial shows whether it can be pulled"


def _named(cluster: CheckedCluster, object_type: ObjectType, name: str, option: str) -> JsonObject | None:
    """An object of the namespace; None where the user may not see it.

    Raises:
        BackendUnavailableError: There is none, or the cluster does not answer.
    """
    try:
        return cluster.get(object_type.path(cluster.namespace, name))
    except BackendUnavailableError:
        raise
    except BackendError as error:
        if not is_missing(error):
            return None
        found = f"There is no {object_type.kind} {name!r} in the namespace {cluster.namespace!r}."
        raise BackendUnavailableError(found, "Expected one of that name.", f"Make it, or change `{option}`.") from error


def _texts(value: JsonValue) -> list[str]:
    return [str(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
