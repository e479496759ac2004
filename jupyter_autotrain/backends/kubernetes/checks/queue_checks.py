"""Whether the queue that a profile or header names is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from jupyter_autotrain.backends.kubernetes.checks.cluster_checks import CheckedCluster, is_missing
from jupyter_autotrain.backends.kubernetes.manifests.trial_manifests import is_volcano
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

KUEUE_GROUP = "kueue.x-k8s.io"
VOLCANO_GROUP = "scheduling.volcano.sh"


def queue_notes(cluster: CheckedCluster) -> list[str]:
    """What a user should know of the queue that is named, a line each.

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
    """The names of all queues; None where the user may not know."""
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
    """The version of a group that the cluster prefers; "" where it does not serve the group."""
    try:
        found = cluster.get(f"/apis/{group}")
    except BackendError as error:
        if is_missing(error):
            return ""
        raise
    return str(cast("JsonObject", found.get("preferredVersion") or {}).get("version") or "")
