"""Whether a cluster would take the objects of a trial from this user: permissions, kinds and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jupyter_autotrain.backends.kubernetes.access.served_schemas import ServedSchemas
from jupyter_autotrain.backends.kubernetes.checks import permissions
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.reasons import queue_reasons
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_NOT_FOUND = 404
_MOST_FAULTS = 4


class ClusterApi(Protocol):
    """What of the API client is used."""

    def request(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        """One request and its answer.

        Raises:
            BackendError: It is refused; its `code` is the HTTP status.
            BackendUnavailableError: There is no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """What is checked.

    Attributes:
        api: Of the cluster.
        address: Of its API server.
        namespace: Where objects are made.
        options: Of the profile and the header's section.
        folder: Where schemas are kept; None: nowhere.
    """

    api: ClusterApi
    address: str
    namespace: str
    options: JsonObject
    folder: Path | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """A GET request."""
        return self.api.request("GET", path, query=query)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """A POST request."""
        return self.api.request("POST", path, body)

    def schemas(self) -> ServedSchemas:
        """The schemas that it serves."""
        return ServedSchemas(self.get, is_missing, self.address, self.folder)


def object_type_of(manifest: JsonObject) -> ObjectType:
    """The type of an object, by the rule that its plural follows from its kind."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"])
    return ObjectType(group, version, f"{kind.lower()}s", kind)


def is_missing(error: Exception) -> bool:
    """True for the answer that there is no such thing."""
    return getattr(error, "code", None) == _NOT_FOUND


def needed_for(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> tuple[permissions.Permission, ...]:
    """What a user must be allowed to do for a trial of these objects, whose first is its own."""
    own, *others = [object_type_of(found) for found in objects]
    is_gang = queue_reasons.GANG in part(objects[0], "metadata", "annotations")
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
    """What a trial of these objects can do without, and the user may not do."""
    lacking = _useful_missing(cluster, objects)
    if not lacking:
        return []
    told = permissions.sentence(lacking, cluster.namespace, permissions.user(cluster.post))
    return [f"{told} Without that a trial may wait without a reason, and `clean` leave something there."]


def _useful_missing(cluster: CheckedCluster, objects: Sequence[JsonObject]) -> tuple[permissions.Permission, ...]:
    needed = needed_for(cluster, objects)
    wanted = [one for one in permissions.useful(object_type_of(objects[0])) if one not in needed]
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


def check_fields(schemas: ServedSchemas, objects: Sequence[JsonObject]) -> None:
    """Make sure that the cluster serves the kinds of these objects and all their fields.

    Raises:
        BackendUnavailableError: Names all that it would not take.
    """
    try:
        faults = [fault for found in objects for fault in schemas.faults(found)]
    except BackendUnavailableError:
        raise
    except BackendError:  # it does not show its schemas: it then refuses itself what is wrong
        return
    if not faults:
        return
    more = [f"and {len(faults) - _MOST_FAULTS + 1} more"] if len(faults) > _MOST_FAULTS else []
    shown = faults[: _MOST_FAULTS - 1] if more else faults
    raise BackendUnavailableError(
        "\n".join([*shown, *more]),
        "Expected fields that this cluster serves.",
        "Change `patch:`, `pod_patch:` or the option it comes from; `--dry-run` shows the whole object.",
    )
