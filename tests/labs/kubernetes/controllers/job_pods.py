"""The pods of a Job."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.labs.kubernetes.controllers.ownership import owner_reference
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import seconds_of
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


def is_indexed(job: Json) -> bool:
    """Return whether each pod of a Job has a number of its own."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def make_pod(job: Json, index: int | None) -> Json:
    """Return a pod of a Job as the controller makes it."""
    metadata = job["metadata"]
    template = copied(job["spec"]["template"])
    labels = dict(template.get("metadata", {}).get("labels") or {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}job-name"] = metadata["name"]
        labels[f"{prefix}controller-uid"] = metadata["uid"]
    annotations = dict(template.get("metadata", {}).get("annotations") or {})
    spec = template["spec"]
    name = metadata["name"]
    if index is not None:
        name = f"{name}-{index}"
        labels[INDEX] = str(index)
        annotations[INDEX] = str(index)
        spec.setdefault("hostname", name)
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            _tell_index(container)
    suffix = "".join(random.choices(_SUFFIX, k=5))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name[:57]}-{suffix}",
            "generateName": f"{name[:57]}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def _tell_index(container: Json) -> None:
    known = {entry["name"] for entry in container.get("env", ())}
    if "JOB_COMPLETION_INDEX" not in known:
        field = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        container["env"] = [*container.get("env", ()), {"name": "JOB_COMPLETION_INDEX", "valueFrom": field}]


def index_of(pod: Json) -> int:
    """Return the number of a pod of an indexed Job."""
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def is_terminal(pod: Json) -> bool:
    """Return whether a pod has ended."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_terminating(pod: Json) -> bool:
    """Return whether a pod is being deleted and has not ended."""
    return "deletionTimestamp" in pod["metadata"] and not is_terminal(pod)


def is_ready(pod: Json) -> bool:
    """Return whether a pod's condition says so."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def format_indexes(indexes: Iterable[int]) -> str:
    """Numbers as a Job's status lists them, such as 0,2-5."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def parse_indexes(text: str) -> set[int]:
    """Return what `format_indexes` wrote."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def ended_at(pod: Json) -> float:
    """When the last container of a pod ended."""
    ends = [0.0]
    for entry in pod.get("status", {}).get("containerStatuses", ()):
        finished = entry.get("state", {}).get("terminated", {}).get("finishedAt")
        if finished:
            ends.append(seconds_of(finished))
    return max(ends)


def create_pod(store: ObjectStore, events: EventRecorder, job: Json, index: int | None) -> bool:
    """Make a pod of a Job; False where it is refused, which an event tells."""
    pod = make_pod(job, index)
    try:
        store.create(PODS, job["metadata"]["namespace"], pod)
    except ApiError as error:
        events.record(job, "FailedCreate", f"Error creating: {error.message}", "Warning")
        return False
    events.record(job, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
    return True


def remove_finalizer(store: ObjectStore, pod: Json) -> None:
    """Let a pod go."""
    metadata = pod["metadata"]
    finalizers = metadata.get("finalizers", [])
    if FINALIZER not in finalizers:
        return
    left = [name for name in finalizers if name != FINALIZER]
    try:
        patch = {"metadata": {"finalizers": left}}
        store.patch(PODS, metadata["namespace"], metadata["name"], patch)
    except ApiError:
        return  # it has gone by itself
