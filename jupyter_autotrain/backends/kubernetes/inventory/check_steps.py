"""The steps of `backends check` for a cluster, before its tiny trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.served import not_served, serves
from jupyter_autotrain.backends.kubernetes.inventory import cluster_checks, permissions
from jupyter_autotrain.backends.kubernetes.inventory.cluster_checks import (
    CheckedCluster,
    check_permissions,
    is_missing,
    needed_for,
    permission_notes,
    queue_notes,
)
from jupyter_autotrain.backends.kubernetes.objects.workload import CLAIMS, SECRETS, ObjectType
from jupyter_autotrain.backends.kubernetes.workloads.pod_template import image_named
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

Render = Callable[[], Sequence[JsonObject]]


def check_trial(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> list[str]:
    """Make sure that the cluster would take a trial of these objects from this user; gives notes, a line each.

    Raises:
        BackendUnavailableError: It would not; names all that is missing or wrong. Or it does not answer.
    """
    check_permissions(cluster, objects)
    notes = cluster_checks.check_objects(cluster, objects)
    return [*permission_notes(cluster, objects), *notes, *queue_notes(cluster)]


def check_steps(connect: Callable[[], CheckedCluster], render: Render) -> Iterator[CheckStep]:
    """Yield the steps before a trial can run there; ends after the first that fails.

    Args:
        connect: Gives the cluster, without a request.
        render: Gives the objects of a trial; may ask the cluster what it serves.
    """
    timer = StepTimer("")
    timer.begin("access")
    try:
        cluster = connect()
    except AutotrainError as error:
        yield timer.refused(error)
        return
    yield timer.done(f"{cluster.address}, namespace {cluster.namespace}")
    for name, check in _CHECKS:
        timer.begin(name)
        try:
            text = check(cluster, render)
        except AutotrainError as error:
            yield timer.refused(error)
            return
        if text:
            yield timer.done(text)


def _reach(cluster: CheckedCluster, _: Render) -> str:
    try:
        version = cluster.get("/version").get("gitVersion")
    except BackendUnavailableError:
        raise
    except BackendError as error:
        if getattr(error, "code", None) not in {401, 403}:
            raise
        version = ""  # it answers, if not to everybody
    return f"Kubernetes {version} answers"


def _log_in(cluster: CheckedCluster, _: Render) -> str:
    try:
        body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status = cast("JsonObject", cluster.post(permissions.SELF, body).get("status") or {})
    except BackendError as error:
        if not is_missing(error):
            raise
        return "logged in"
    name = cast("JsonObject", status.get("userInfo") or {}).get("username")
    return f"logged in as {name}"


def _kinds(cluster: CheckedCluster, render: Render) -> str:
    """Return whether the operator, or whatever else makes the kinds of objects known, is installed."""
    found = list(map(ObjectType.of, render()))
    for one in found:
        if not serves(cluster.get, one):
            expected = "Expected it to be installed there."
            raise BackendUnavailableError(not_served(cluster.get, one), expected, "Install it, or change `type:`.")
    return ", ".join(f"{one.kind} ({one.api_version})" for one in found) + " served"


def _permitted(cluster: CheckedCluster, render: Render) -> str:
    objects = render()
    check_permissions(cluster, objects)
    return "; ".join([f"all {len(needed_for(cluster, objects))} that are needed", *permission_notes(cluster, objects)])


def _fields(cluster: CheckedCluster, render: Render) -> str:
    objects = render()
    notes = cluster_checks.check_objects(cluster, objects)
    return "; ".join([f"the cluster takes all of {', '.join(str(found['kind']) for found in objects)}", *notes])


def _queue(cluster: CheckedCluster, _: Render) -> str:
    notes = queue_notes(cluster)
    queue = cluster.options.get("queue")
    return "; ".join(notes) or (f"{queue} is there" if queue else "")


def _storage(cluster: CheckedCluster, _: Render) -> str:
    """Return what can be said of the storage from here: the claim of a PVC."""
    storage = cluster.options.get("storage")
    if not isinstance(storage, Mapping):
        return "none: code of up to 1 MiB goes by ConfigMaps"
    name = storage.get("pvc")
    if name is None:
        kind = next(str(key) for key in storage if key not in {"sub_path", "local_path"})
        return f"{kind}: the trial shows whether it can be reached from a pod"
    found = _named(cluster, CLAIMS, str(name), "storage:")
    if found is None:
        return f"the PVC {name} could not be asked"
    phase = cast("JsonObject", found.get("status") or {}).get("phase")
    modes = cast("JsonObject", found.get("spec") or {}).get("accessModes")
    return f"the PVC {name} is {phase} ({', '.join(_texts(modes))})"


def _image(cluster: CheckedCluster, _: Render) -> str:
    """Return the image, and whether the Secrets with the logins of its registry are there."""
    for name in _texts(cluster.options.get("image_pull_secrets")):
        _named(cluster, SECRETS, name, "image_pull_secrets:")
    return f"{image_named(cluster.options)}: the trial shows whether it can be pulled"


def _named(cluster: CheckedCluster, object_type: ObjectType, name: str, option: str) -> JsonObject | None:
    """Return an object of the namespace; None where the user may not see it.

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
    return list(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else []


_CHECKS: Sequence[tuple[str, Callable[[CheckedCluster, Render], str]]] = (
    ("reach", _reach), ("log in", _log_in), ("kinds", _kinds), ("permissions", _permitted), ("fields", _fields),
    ("queue", _queue), ("storage", _storage), ("image", _image),
)  # fmt: skip
