"""The needs of a trial that are checked before a submit: the namespace, permissions, the queue.

The cluster tries the objects and makes none: it says itself what it would refuse of them, and of their pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.served import Get, not_served
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.backends.kubernetes.inventory.permissions import Permission
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons
from jupyter_autotrain.backends.kubernetes.objects.container_reasons import short
from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import PODS, ObjectType
from jupyter_autotrain.backends.kubernetes.workloads.manifests import is_volcano
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """The cluster that a trial is checked against.

    Attributes:
        api: Of the cluster.
        address: Of its API server.
        namespace: Where objects are made.
        options: Of the profile and the header's section.
    """

    api: KubernetesApi
    address: str
    namespace: str
    options: JsonObject

    def get(self, path: str) -> JsonObject:
        """Send a GET request."""
        return self.api.request("GET", path)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Send a POST request."""
        return self.api.request("POST", path, body)


def is_missing(error: Exception) -> bool:
    """Return whether it is the answer that there is no such thing."""
    return getattr(error, "code", None) == _NOT_FOUND


def needed_for(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> tuple[permissions.Permission, ...]:
    """Return what a user must be allowed to do for a trial of these objects, whose first is its own."""
    own, *others = list(map(ObjectType.of, objects))
    is_gang = pending_reasons.GANG in part(objects[0], "metadata", "annotations")
    return permissions.needed(own, others, cluster.options, is_gang=is_gang)


def check_permissions(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> None:
    """Make sure that the namespace is there, and that the user may do there what a trial of these objects needs.

    Raises:
        BackendUnavailableError: Something is missing: says what, with a Role that gives it.
    """
    _check_namespace(cluster)
    if lacking := permissions.missing(cluster.post, cluster.namespace, needed_for(cluster, objects)):
        besides = _useful_missing(cluster, objects)
        raise permissions.refusal(lacking, cluster.namespace, permissions.user(cluster.post), besides)


def permission_notes(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> list[str]:
    """Return what a trial of these objects can do without, and the user may not do."""
    lacking = _useful_missing(cluster, objects)
    if not lacking:
        return []
    told = permissions.sentence(lacking, cluster.namespace, permissions.user(cluster.post))
    return [f"{told} Without that a trial may wait without a reason, and `clean` leave something there."]


def _useful_missing(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> tuple[permissions.Permission, ...]:
    needed = needed_for(cluster, objects)
    wanted = [one for one in permissions.useful(ObjectType.of(objects[0])) if one not in needed]
    return permissions.missing(cluster.post, cluster.namespace, wanted)


def _check_namespace(cluster: CheckedCluster) -> None:
    try:
        cluster.get(f"/api/v1/namespaces/{cluster.namespace}")
    except BackendUnavailableError:
        raise
    except BackendError as error:
        if not is_missing(error):
            return  # it may be there: many users may not look at namespaces
        found = f"There is no namespace {cluster.namespace!r} in the cluster."
        action = "Change `namespace:`, or the namespace of the kubeconfig's context; or make it there."
        raise BackendUnavailableError(found, "Expected one of that name.", action) from error


KUEUE_GROUP = "kueue.x-k8s.io"
VOLCANO_GROUP = "scheduling.volcano.sh"


def queue_notes(cluster: CheckedCluster) -> list[str]:
    """Return what a user should know of the queue that is named, a line each.

    Raises:
        BackendUnavailableError: There is no such queue.
    """
    queue = str(cluster.options.get("queue") or "")
    if not queue:
        return []
    kind = ObjectType(KUEUE_GROUP, "", "localqueues", "LocalQueue")
    namespace = cluster.namespace
    if is_volcano(cluster.options):
        kind = ObjectType(VOLCANO_GROUP, "", "queues", "Queue")
        namespace = ""
    names = _queue_names(cluster, kind, namespace)
    if names is None:
        return [f"Whether there is a queue {queue!r} could not be asked."]
    if queue in names:
        return []
    near = closest_match(queue, names)
    expected = f"Did you mean {near!r}?" if near else f"There are: {', '.join(sorted(names)) or 'none'}."
    among = f"{kind.plural}.{kind.group}" + (f" in the namespace {namespace!r}" if namespace else "")
    raise BackendUnavailableError(f"No queue {queue!r} among the {among}.", expected, "Change `queue:`.")


def _queue_names(cluster: CheckedCluster, kind: ObjectType, namespace: str) -> list[str] | None:
    """Return the names of all queues; None where the user may not know."""
    try:
        version = _preferred_version(cluster, kind.group)
        if not version:
            return []
        found = cluster.get(replace(kind, version=version).path(namespace))
    except BackendUnavailableError:
        raise
    except BackendError as error:
        return [] if is_missing(error) else None
    items = cast("Sequence[JsonObject]", found.get("items") or ())
    return [str(cast("JsonObject", item["metadata"])["name"]) for item in items]


def _preferred_version(cluster: CheckedCluster, group: str) -> str:
    """Return the version of a group that the cluster prefers; "" where it does not serve the group."""
    try:
        found = cluster.get(f"/apis/{group}")
    except BackendError as error:
        if is_missing(error):
            return ""
        raise
    return str(cast("JsonObject", found.get("preferredVersion") or {}).get("version") or "")


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
