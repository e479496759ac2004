"""Why a trial waits: its pods find no node, or a queue, a suspension or a quota keeps it from having pods. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.objects.container_reasons import short
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, parse_quantity, part, text, value

_SUMMARY = re.compile(r"(\d+)/(\d+) nodes are available: (.*)", re.DOTALL)
# What follows the nodes' reasons: dynamic resource allocation (from 1.34 on), then preemption.
_REST = re.compile(r"[.,]? (?:no new claims to deallocate|preemption:).*", re.DOTALL)
_HOPELESS = re.compile(r"(\d+) Preemption is not helpful for scheduling")
_OF_OTHERS = ("Insufficient ", "Too many pods", "affinity rules", "topology spread", "free ports")
_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
_OLD_TAINT = ", that the pod didn't tolerate"
_COUNTED = re.compile(r"(\d+) (.*)", re.DOTALL)
_TAINT = re.compile(r"\{([^:}]+):? ?([^}]*)\}")
_INSUFFICIENT = {
    "cpu": "too few free CPUs",
    "memory": "too little free memory",
    "ephemeral-storage": "too little free disk",
    "pods": "as many pods as they may have",
}
_PARTS = (
    ("Too many pods", "as many pods as they may have"),
    ("node affinity/selector", "other labels than its `node_selector` or `affinity` asks for"),
    ("node selector", "other labels than its `node_selector` asks for"),
    ("were unschedulable", "been closed for new pods"),
    ("volume node affinity conflict", "no access to its volume"),
    ("pod affinity", "other pods than its affinity asks for"),
    ("topology spread", "too many of its pods already"),
    ("free ports", "its port taken"),
)


def unscheduled(pod: JsonObject) -> str:
    """Return the rest of a sentence that begins with the trial; "" for a pod with a node, or not looked at yet."""
    told = _condition(pod)
    if told.get("reason") == "SchedulingGated":
        gates = ", ".join(text(gate, "name") for gate in items(pod, "spec", "schedulingGates"))
        return f"waits behind a scheduling gate of its pod ({gates or 'unnamed'})"
    return sentence(text(told, "message"), pod) if told else ""


def _condition(pod: JsonObject) -> JsonObject:
    """Return the condition by which the scheduler says that a pod has no node; empty where it has one."""
    for one in items(pod, "status", "conditions"):
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return one
    return {}


def pod_waits_for_others(pod: JsonObject) -> bool:
    """Return whether the end of other pods may give a pod its node; else no node can take it, however empty."""
    told = _condition(pod)
    message = text(told, "message")
    summary = _SUMMARY.match(message)
    if told.get("reason") == "SchedulingGated" or summary is None:
        return _CLAIM.search(message) is None
    return not _is_hopeless(message, summary[2]) and any(words in summary[3] for words in _OF_OTHERS)


def _is_hopeless(message: str, nodes: str) -> bool:
    """Return whether the scheduler says of all nodes that no pod which went would help."""
    hopeless = _HOPELESS.search(message)
    return hopeless is not None and hopeless[1] == nodes


def sentence(message: str, pod: JsonObject) -> str:
    """Return the scheduler's message in a user's words; one that is not known is passed on as it is."""
    plain = _REST.sub("", message.replace(_OLD_TAINT, "")).strip().rstrip(".")
    if claim := _CLAIM.search(plain):
        return f"waits for its volume: there is no PVC {claim[1]} in its namespace; make it, or correct the profile"
    match = _SUMMARY.match(plain)
    if match is None:
        return f"waits for a node: {plain}" if plain else "waits for a node"
    free, total, rest = match.groups()
    whys = [_why(each.strip(), pod) for each in rest.rstrip(".").split(", ")]
    nodes = "1 node" if total == "1" else f"{total} nodes"
    if _is_hopeless(message, total):
        return f"waits for a node that fits: none of {nodes} could take it, however empty ({'; '.join(whys)})"
    return f"waits for a node with room: {free} of {nodes} can take it ({'; '.join(whys)})"


def _why(told: str, pod: JsonObject) -> str:
    match = _COUNTED.match(told)
    if match is None:
        return told
    count, what = match.groups()
    verb = "has" if count == "1" else "have"
    if what.startswith("Insufficient "):
        return f"{count} {verb} {_insufficient(what.removeprefix('Insufficient '), pod)}"
    if "taint" in what:
        return f"{count} {verb} a taint that it does not tolerate{_taint(what)}"
    for known, meaning in _PARTS:
        if known in what:
            return f"{count} {verb} {meaning}"
    return told


def _insufficient(resource: str, pod: JsonObject) -> str:
    amount = _asked(pod, resource)
    asked = f", it asks for {amount}" if amount else ""
    known = _INSUFFICIENT.get(resource)
    if known:
        return known + asked
    what = "too few free GPUs" if "gpu" in resource else "too little that is free of it"
    return f"{what} ({resource}{asked})"


def _asked(pod: JsonObject, resource: str) -> str:
    """Return what the pod's first container asks for, as the manifest says it."""
    for container in items(pod, "spec", "containers")[:1]:
        for kind in ("requests", "limits"):
            amount = part(container, "resources", kind).get(resource)
            if amount is not None:
                return str(amount)
    return ""


def _taint(told: str) -> str:
    match = _TAINT.search(told)
    if match is None:
        return ""
    key, content = match.groups()
    return f" ({key}={content})" if content else f" ({key})"


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
    """Return the rest of a sentence that begins with the trial; "" for an object that is not suspended."""
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
    """Return whether its spec says so now; a condition may stay behind."""
    return any(value(found, *path) is True for path in _SUSPEND_PATHS)


def is_refusal(message: str) -> bool:
    """Return whether it is the API server that refuses something in these words, whoever passes them on."""
    return _REFUSAL.search(message) is not None


def is_known_refusal(message: str) -> bool:
    """Return whether it is a rule of the namespace that refuses in these words, which a user can follow."""
    return any(pattern.search(message) for pattern, _ in _WORDS)


def server_message(message: str) -> str:
    """Return a refusal of the server, of an object or of a pod of it, in a user's words."""
    for pattern, words in _WORDS:
        found = pattern.search(message)
        if found is not None:
            return words(found)
    return f"the cluster refuses its pods: {short(message)}"


def quota_waits_for_others(message: str) -> bool:
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
    if not quota_waits_for_others(found[0]):
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
    """Return what a PodGroup of Volcano waits for."""
    if text(pod_group, "status", "phase") not in {"", "Pending", "Inqueue"}:
        return ""
    queue = text(pod_group, "spec", "queue") or "default"
    told = condition(pod_group, "Unschedulable")
    why = short(text(told, "message"))
    return f"is queued by Volcano in {queue}: all its pods begin, or none{f' ({why})' if why else ''}"
