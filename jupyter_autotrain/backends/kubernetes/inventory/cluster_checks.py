"""The needs of a trial that are checked before its objects are tried: the namespace, permissions, the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
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
    own, *others = [ObjectType.of(found) for found in objects]
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
