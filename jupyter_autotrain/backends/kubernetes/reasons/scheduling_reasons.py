"""Why the scheduler finds no node for a pod, with its numbers. Pure."""

from __future__ import annotations

import re

from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.core.json import JsonObject

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


def of_pod(pod: JsonObject) -> str:
    """The rest of a sentence that begins with the trial; "" when the pod has a node, or nobody has looked yet."""
    told = _condition(pod)
    if told.get("reason") == "SchedulingGated":
        gates = ", ".join(text(gate, "name") for gate in items(pod, "spec", "schedulingGates"))
        return f"waits behind a scheduling gate of its pod ({gates or 'unnamed'})"
    return sentence(text(told, "message"), pod) if told else ""


def _condition(pod: JsonObject) -> JsonObject:
    """Return the condition by which the scheduler says that a pod has no node; empty where it has one."""
    for condition in items(pod, "status", "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return condition
    return {}


def waits_for_others(pod: JsonObject) -> bool:
    """Return whether the end of other pods may give a pod its node; else no node can take it, however empty."""
    told = _condition(pod)
    message = text(told, "message")
    summary = _SUMMARY.match(message)
    if told.get("reason") == "SchedulingGated" or summary is None:
        return _CLAIM.search(message) is None
    return not _is_hopeless(message, summary[2]) and any(words in summary[3] for words in _OF_OTHERS)


def _is_hopeless(message: str, nodes: str) -> bool:
    """Whether the scheduler says of all nodes that no pod which went would help."""
    hopeless = _HOPELESS.search(message)
    return hopeless is not None and hopeless[1] == nodes


def sentence(message: str, pod: JsonObject) -> str:
    """The scheduler's message in a user's words; one that is not known is passed on as it is."""
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
    """What the pod's first container asks for, as the manifest says it."""
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
