"""The place of a pod among the pods of its trial: its number, and where node 0 listens. Runs in the pod.

The pod of node 0 is reached by the name that the object's controller gives it, at a port that is always the same. Where
pods have no names, a service of the kind of object tells the addresses of all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.trial.trial_file import Layout

PORT = 29400
_MEET_S = 900  # for all pods; a trial that does not get all of its nodes is ended by the manager earlier
ADAPTDL = "adaptdl"
BARRIER = "frameworkbarrier"
BARRIER_FILE = "/mnt/frameworkbarrier/framework.json"
_ADDRESSES_S = 600.0
_ANSWER_S = 60.0  # AdaptDL's service answers after half a minute that a pod is missing still
_PAUSE_S = 1.0
_MISSING = 408


class PeersError(Exception):
    """An error of pods of a trial that did not find each other; the text says why."""


def layout(options: Mapping[str, object], environ: Mapping[str, str]) -> Layout:
    """Return what this pod has to know to meet the others.

    Args:
        options: What the pod was told: `nodes`, `variables` (`NodeVariables` as JSON).
        environ: The variables of its container.

    Raises:
        PeersError: Where node 0 is cannot be found out.
    """
    node = node_of(options, environ)
    address = _first_address(options, environ) if node else ""
    nodes = fields.integer(options.get("nodes"), 1)
    return {"node_rank": node, "nodes": nodes, "first": [address, PORT], "wait_s": _MEET_S}


def _first_address(options: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """Return the host name or address of node 0."""
    names = fields.mapping(options.get("variables"))
    kind = str(names.get("peers") or "")
    if kind:
        return addresses(kind, environ)[0]
    return environ.get(str(names.get("first_address")), "")


def node_of(options: Mapping[str, object], environ: Mapping[str, str]) -> int:
    """Return the number of this pod among the nodes of the trial, from 0."""
    names = fields.mapping(options.get("variables"))
    rank = environ.get(str(names.get("rank") or "-"), "0")
    offset = environ.get(str(names.get("offset") or "-"), "0")
    return int(rank) + int(offset)


def addresses(kind: str, environ: Mapping[str, str], wait_s: float = _ADDRESSES_S) -> list[str]:
    """Return the addresses of all nodes of the trial, in the order of their numbers.

    Args:
        kind: `NodeVariables.peers` of the kind of object.
        environ: The variables of the container.
        wait_s: How long they may take to be there.

    Raises:
        PeersError: They were not.
    """
    if kind == ADAPTDL:
        return _of_adaptdl(environ, wait_s)
    return _of_barrier(BARRIER_FILE)


def _of_adaptdl(environ: Mapping[str, str], wait_s: float) -> list[str]:
    """Ask AdaptDL's service for the addresses of this group of pods; it answers when all have one."""
    import urllib.error  # noqa: PLC0415 - its imports take as long as all others of a pod; only such pods pay
    import urllib.request  # noqa: PLC0415 - as above

    group = environ.get("ADAPTDL_NUM_RESTARTS", "0")
    url = f"{environ.get('ADAPTDL_SUPERVISOR_URL', '')}/discover/{environ.get('ADAPTDL_JOB_ID', '')}/{group}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline_s = time.monotonic() + wait_s
    why = "no answer"
    while time.monotonic() < deadline_s:
        try:
            with opener.open(url, timeout=_ANSWER_S) as answer:
                return fields.strings(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            why = "not all pods have an address" if error.code == _MISSING else f"it answers {error.code}"
        except (OSError, ValueError) as error:
            why = str(error)
        time.sleep(min(_PAUSE_S, wait_s))
    raise PeersError(f"The pods did not find each other by AdaptDL's service ({url}) within {wait_s:g} s: {why}.")


def _of_barrier(path: str) -> list[str]:
    """Return the addresses that the barrier of FrameworkController wrote down before this container began."""
    try:
        with open(path, encoding="utf-8") as file:
            found = fields.mapping(json.load(file))
    except (OSError, ValueError) as error:
        raise PeersError(f"The barrier left no addresses of the other pods: {error}.") from error
    attempt = fields.mapping(fields.mapping(found.get("status")).get("attemptStatus"))
    told = []
    for role in _list(attempt.get("taskRoleStatuses")):
        for task in _list(fields.mapping(role).get("taskStatuses")):
            status = fields.mapping(fields.mapping(task).get("attemptStatus"))
            told.append(str(status.get("podIP") or ""))
    if not told or "" in told:
        raise PeersError(f"The barrier left {told.count('')} of {len(told)} pods without an address.")
    return told


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
