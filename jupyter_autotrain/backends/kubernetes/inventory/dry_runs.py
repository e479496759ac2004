"""Objects that a cluster tries and does not make: it says itself what it would refuse of them, and of their pods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.served import Get, not_served
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.backends.kubernetes.inventory.cluster_checks import CheckedCluster
from jupyter_autotrain.backends.kubernetes.inventory.permissions import Permission
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons
from jupyter_autotrain.backends.kubernetes.objects.container_reasons import short
from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import PODS, ObjectType
from jupyter_autotrain.errors import BackendUnavailableError

_MOST_FAULTS = 4
_POD_NAME = "jupyter-autotrain-check"
_STRICT = (1, 27)  # the version from which every cluster refuses unknown fields where it is asked to
_VERSION = re.compile(r"v(\d+)\.(\d+)")
_UNKNOWN_FIELD = re.compile(r'(?:unknown|duplicate) field \\?"[^"\\]+\\?"')
_UNTRIED = "does not support dry run"
_INVALID = (400, 422)


def check_objects(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> list[str]:
    """Have a cluster try the objects of a trial, and a bare pod like its own; gives notes, a line each.

    Raises:
        BackendUnavailableError: It would not take them: names what it refuses. Or it does not answer.
    """
    faults: list[str] = []
    notes: list[str] = []
    for found in objects:
        if error := _refusal(cluster, found):
            _tell(_faults(cluster.get, found, error), error, faults, notes)
    if not faults:
        _try_pod(cluster, objects[0], faults, notes)
    if faults:
        raise _refused(faults)
    return [*notes, *_weaker(cluster)]


def _try_pod(cluster: CheckedCluster, own: JsonObject, faults: list[str], notes: list[str]) -> None:
    """Try the pod by itself: what it lacks shows in no object that only holds its template.

    A refusal that is none of the namespace's own rules may be one of bare pods alone: it is only told.
    """
    template = _template(own)
    if template is None:
        return
    if permissions.missing(cluster.post, cluster.namespace, [Permission("", "pods", "create")]):
        notes.append("You may not create pods, so what the namespace demands of them shows in a trial alone.")
        return
    pod: JsonObject = {
        "apiVersion": PODS.api_version, "kind": PODS.kind, "spec": part(template, "spec"),
        "metadata": {"name": _POD_NAME, "namespace": cluster.namespace},
    }  # fmt: skip
    error = _refusal(cluster, pod)
    if error is None:
        return
    if error.code in _INVALID or pending_reasons.is_known_refusal(error.message):
        _tell(_faults(cluster.get, pod, error), error, faults, notes)
    else:
        notes.append(f"The cluster may refuse its pods: {short(error.message)}")


def _tell(told: Sequence[str], error: ApiRefusedError, faults: list[str], notes: list[str]) -> None:
    """Tell what may pass by itself, or could not be tried, apart from what is wrong."""
    may_pass = pending_reasons.quota_waits_for_others(error.message) or _UNTRIED in error.message
    (notes if may_pass else faults).extend(told)


def _refusal(cluster: CheckedCluster, found: JsonObject) -> ApiRefusedError | None:
    """Return why a cluster would not make an object; None where it would, or where the object is there already."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    path = ObjectType.of(found).path(cluster.namespace)
    try:
        cluster.api.request("POST", path, found, query)
    except ApiRefusedError as error:
        return None if error.reason == "AlreadyExists" else error
    return None


def _faults(get: Get, found: JsonObject, error: ApiRefusedError) -> list[str]:
    """Return what is wrong with an object, a line each, in the server's words or in a user's where we know them."""
    kind = text(found, "kind")
    if error.code == 404:
        return [not_served(get, ObjectType.of(found))]
    if unknown := _UNKNOWN_FIELD.findall(error.message):
        return [f"{kind}: {one}".replace("\\", "") for one in unknown]
    causes = items(error.details, "causes")
    if causes:
        return [f"{kind} {text(one, 'field')}: {text(one, 'message')}" for one in causes]
    if pending_reasons.is_known_refusal(error.message):
        return [f"{kind}: {pending_reasons.server_message(error.message)}"]
    return [error.message]


def _template(found: JsonValue) -> JsonObject | None:
    """Return the first whole pod template in an object: one whose containers all name an image."""
    inner: Iterable[JsonValue] = ()
    if isinstance(found, list):
        inner = found
    elif isinstance(found, dict):
        containers = items(found, "spec", "containers")
        if containers and all(one.get("image") for one in containers):
            return found
        inner = found.values()
    for one in inner:
        if template := _template(one):
            return template
    return None


def _weaker(cluster: CheckedCluster) -> Iterator[str]:
    """Yield a note about a cluster that drops what it does not know."""
    try:
        version = text(cluster.get("/version"), "gitVersion")
    except ApiRefusedError:  # it answers, if not to everybody
        return
    known = _VERSION.match(version)
    if known and (int(known[1]), int(known[2])) < _STRICT:
        yield f"Kubernetes {version} drops fields that it does not know: this check is weaker there than from 1.27 on."


def _refused(faults: Sequence[str]) -> BackendUnavailableError:
    more = [f"and {len(faults) - _MOST_FAULTS + 1} more"] if len(faults) > _MOST_FAULTS else []
    shown = faults[: _MOST_FAULTS - 1] if more else faults
    return BackendUnavailableError(
        "\n".join([*shown, *more]),
        "Expected what this cluster takes: it tried the trial's objects and made none.",
        "Change `patch:`, `pod_patch:` or the option it comes from; `--dry-run` shows the whole object.",
    )
