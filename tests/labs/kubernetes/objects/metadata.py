"""Fields of `metadata` that the server itself writes when an object is made, changed or deleted."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import Any

from tests.labs.kubernetes.objects.errors import Cause, conflict, invalid
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
    "name",
    "generation",
)
_UNGENERATED = ("configmaps", "secrets", "events", "leases", "serviceaccounts", "namespaces", "nodes")
DEFAULT_GRACE_S = 30


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value, several times as fast as that of any object."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def timestamp(now_s: float) -> str:
    """Return a time as the API writes it, in whole seconds."""
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def for_create(resource: Resource, namespace: str, body: Json, now_s: float) -> Json:
    """Return a new object as it is stored, still without its resourceVersion."""
    made: Json = {"apiVersion": resource.api_version, "kind": resource.kind} | copied(body)
    if resource.has_status:
        made.pop("status", None)
    metadata = made.setdefault("metadata", {})
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + "".join(random.choices(_SUFFIX, k=5))
    if not metadata.get("name"):
        cause = Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
        raise invalid(resource, "", [cause])
    for key in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(key, None)
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp(now_s)}
    if resource.namespaced:
        metadata["namespace"] = namespace
    if resource.plural not in _UNGENERATED:
        metadata["generation"] = 1
    return made


def for_update(resource: Resource, found: Json, body: Json, subresource: str) -> Json:
    """Return an object as a replacement changes it, still with its old resourceVersion.

    Raises:
        ApiError: 409: The replacement is of another version or another object.
    """
    _check_preconditions(resource, found, body)
    changed: Json = copied(found if subresource == "status" else body)
    changed |= {"apiVersion": found["apiVersion"], "kind": found["kind"]}
    if subresource == "status":
        _take(changed, body, "status")
        return changed
    if resource.has_status:
        _take(changed, found, "status")
    metadata = changed.setdefault("metadata", {})
    for key in (*_KEPT, "resourceVersion"):
        _take(metadata, found["metadata"], key)
    if "generation" in metadata and _content(changed) != _content(found):
        metadata["generation"] += 1
    return changed


def _take(target: Json, source: Json, key: str) -> None:
    if key in source:
        target[key] = copied(source[key])
    else:
        target.pop(key, None)


def _content(found: Json) -> Json:
    return {key: value for key, value in found.items() if key not in ("metadata", "status")}


def _check_preconditions(resource: Resource, found: Json, body: Json) -> None:
    metadata = body.get("metadata") or {}
    name = found["metadata"]["name"]
    if metadata.get("uid") not in (None, found["metadata"]["uid"]):
        raise conflict(resource, name, another_uid(metadata["uid"], found))
    if metadata.get("resourceVersion") not in (None, "", found["metadata"]["resourceVersion"]):
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(resource, name, why)


def another_uid(uid: str, found: Json) -> str:
    """Why a request that names another object of the same name is refused."""
    return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found['metadata']['uid']}"


def for_delete(resource: Resource, found: Json, grace_s: int | None, propagation: str, now_s: float) -> Json | None:
    """Return an object that stays until it may go, or None: it goes now."""
    marked: Json = copied(found)
    metadata = marked["metadata"]
    if propagation == "Foreground" and "foregroundDeletion" not in metadata.get("finalizers", []):
        metadata["finalizers"] = [*metadata.get("finalizers", []), "foregroundDeletion"]
    if propagation == "Orphan" and "orphan" not in metadata.get("finalizers", []):
        metadata["finalizers"] = [*metadata.get("finalizers", []), "orphan"]
    wait_s = _grace(resource, found, grace_s)
    earlier = metadata.get("deletionGracePeriodSeconds")
    if earlier is not None:
        wait_s = min(wait_s, earlier)
    if not wait_s and not metadata.get("finalizers") and not _holds_content(found):
        return None
    if earlier is None or wait_s < earlier:
        metadata |= {"deletionTimestamp": timestamp(now_s + wait_s), "deletionGracePeriodSeconds": wait_s}
        if "generation" in metadata and earlier is None:
            metadata["generation"] += 1
        if found["kind"] == "Namespace":
            marked["status"] = {"phase": "Terminating"}
    return marked


def _holds_content(found: Json) -> bool:
    """Return whether an object is a namespace that has not been emptied."""
    return found["kind"] == "Namespace" and bool((found.get("spec") or {}).get("finalizers"))


def _grace(resource: Resource, found: Json, grace_s: int | None) -> int:
    if resource.key != ("", "pods"):
        return 0
    spec = found.get("spec", {})
    if not spec.get("nodeName") or found.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    if grace_s is not None:
        return max(grace_s, 0)
    return int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))


def may_go(found: Json) -> bool:
    """Return whether an object that is being deleted has nothing left that keeps it."""
    metadata = found["metadata"]
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds", 0) or _holds_content(found)
    return "deletionTimestamp" in metadata and not waits
