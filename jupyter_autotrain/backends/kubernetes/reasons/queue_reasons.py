"""What keeps an object from having pods at all: a queue, a suspension, a quota, a rule of the namespace. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from jupyter_autotrain.backends.kubernetes.objects.fields import condition, part, text, value
from jupyter_autotrain.backends.kubernetes.objects.quantities import parse_quantity
from jupyter_autotrain.backends.kubernetes.reasons.container_reasons import short
from jupyter_autotrain.core.json import JsonObject

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GANG = "jupyter-autotrain/gang"  # an annotation: with how many pods a trial begins that was made suspended
_SUSPEND_PATHS = (("spec", "suspend"), ("spec", "runPolicy", "suspend"))
_QUEUE_EVENTS = frozenset({"Pending", "Suspended", "Inadmissible", "QuotaReserved", "Unschedulable"})
_REFUSAL = re.compile(r"\bis (?:forbidden|invalid): ")
_QUOTA = re.compile(r"exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+?)\.?$", re.DOTALL)
_SECURITY = re.compile(r"violates PodSecurity \"?([^:\"]+)[^\"]*\"?: (.*)", re.DOTALL)
_MISSING_LIMITS = re.compile(r"failed quota: ([^:]+): must specify (.+)$", re.DOTALL)
_PRIORITY = re.compile(r"no PriorityClass with name (\S+) was found")
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


def is_refusal(message: str) -> bool:
    """Return whether it is the API server that refuses something in these words, whoever passes them on."""
    return _REFUSAL.search(message) is not None


def server_message(message: str) -> str:
    """A refusal of the server, of an object or of a pod of it, in a user's words."""
    for pattern, words in _WORDS:
        found = pattern.search(message)
        if found is not None:
            return words(found)
    return f"the cluster refuses its pods: {short(message)}"


def waits_for_others(message: str) -> bool:
    """Return whether a refusal may end by itself: others use a quota up that is large enough for the trial."""
    quota = _QUOTA.search(message)
    if quota is None:
        return False
    limited = dict(_amounts(quota[4]))
    return all(asked <= limited.get(name, asked) for name, asked in _amounts(quota[2]))


def _amounts(told: str) -> Iterator[tuple[str, Decimal]]:
    """Yield the resources of a quota as the server lists them: `pods=1,requests.cpu=2`."""
    for one in told.split(","):
        name, _, amount = one.strip().partition("=")
        with contextlib.suppress(ValueError):
            yield name, parse_quantity(amount)


def _of_quota(found: re.Match[str]) -> str:
    name, requested, used, limited = (each.strip() for each in found.groups())
    if not waits_for_others(found[0]):
        return f"the quota {name} of its namespace is too small: it asks for {requested}, and {limited} is allowed"
    return f"the quota {name} of its namespace is used up: it asks for {requested}, {used} of {limited} are taken"


def _of_missing_limits(found: re.Match[str]) -> str:
    return (
        f"the quota {found[1]} of its namespace wants what its pods do not say: {short(found[2])} "
        "(`resources: {cpus: ..., memory: ...}`)"
    )


def _of_security(found: re.Match[str]) -> str:
    return (
        f"the namespace allows only pods of the security standard {found[1]}: {short(found[2])} "
        "(`security_context` of the profile)"
    )


def _of_account(found: re.Match[str]) -> str:
    return f"there is no service account {found[1].split('/')[-1]}: correct `service_account`"


def _of_priority(found: re.Match[str]) -> str:
    return f"there is no priority class {found[1]}: correct `priority_class`"


_WORDS: Final[Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]] = (
    (_QUOTA, _of_quota), (_MISSING_LIMITS, _of_missing_limits), (_SECURITY, _of_security), (_ACCOUNT, _of_account),
    (_PRIORITY, _of_priority),
)  # fmt: skip


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
