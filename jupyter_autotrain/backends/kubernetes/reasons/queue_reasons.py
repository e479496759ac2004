"""What keeps an object from having pods at all: a queue, a suspension, a quota, a rule of the namespace. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.fields import condition, part, text, value
from jupyter_autotrain.backends.kubernetes.reasons.container_reasons import short
from jupyter_autotrain.core.json import JsonObject

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GANG = "jupyter-autotrain/gang"  # an annotation: with how many pods a trial begins that was made suspended
_SUSPEND_PATHS = (("spec", "suspend"), ("spec", "runPolicy", "suspend"))
_QUEUE_EVENTS = frozenset({"Pending", "Suspended", "Inadmissible", "QuotaReserved", "Unschedulable"})
_QUOTA = re.compile(r"exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+?)\.?$", re.DOTALL)
_SECURITY = re.compile(r"violates PodSecurity \"?([^:\"]+)[^\"]*\"?: (.*)", re.DOTALL)
_ACCOUNT = re.compile(r"serviceaccount \"?([^\"\s]+)\"? not found")


def queued(found: JsonObject, events: Sequence[JsonObject] = ()) -> str:
    """The rest of a sentence that begins with the trial; "" for an object that is not suspended."""
    if not is_suspended(found):
        return ""
    nodes = text(found, "metadata", "annotations", GANG)
    if nodes:
        return f"waits until all its {nodes} nodes can begin together: one trial after another tries"
    queue = str(part(found, "metadata", "labels").get(KUEUE_LABEL) or "")
    if not queue:
        return "is suspended: its `suspend` was set; it goes on when somebody sets it to false"
    why = _queue_words(events)
    return f"is queued by Kueue in {queue}{f': {why}' if why else ''}"


def is_suspended(found: JsonObject) -> bool:
    """Whether its spec says so now; a condition may stay behind."""
    return any(value(found, *path) is True for path in _SUSPEND_PATHS)


def server_message(message: str) -> str:
    """A refusal of the server, of an object or of a pod of it, in a user's words."""
    quota = _QUOTA.search(message)
    if quota is not None:
        name, requested, used, limited = (each.strip() for each in quota.groups())
        return f"the quota {name} of its namespace is used up: it asks for {requested}, {used} of {limited} are taken"
    security = _SECURITY.search(message)
    if security is not None:
        return (
            f"the namespace allows only pods of the security standard {security[1]}: {short(security[2])} "
            "(`security_context` of the profile)"
        )
    account = _ACCOUNT.search(message)
    if account is not None:
        return f"there is no service account {account[1].split('/')[-1]}: correct `service_account`"
    return f"the cluster refuses its pods: {short(message)}"


def _queue_words(events: Sequence[JsonObject]) -> str:
    for event in reversed(events):
        if text(event, "reason") in _QUEUE_EVENTS and text(event, "message"):
            return short(text(event, "message"))
    return ""


def gang(pod_group: JsonObject) -> str:
    """What a PodGroup of Volcano waits for."""
    if text(pod_group, "status", "phase") not in {"", "Pending", "Inqueue"}:
        return ""
    queue = text(pod_group, "spec", "queue") or "default"
    told = condition(pod_group, "Unschedulable")
    why = short(text(told, "message"))
    return f"is queued by Volcano in {queue}: all its pods begin, or none{f' ({why})' if why else ''}"
