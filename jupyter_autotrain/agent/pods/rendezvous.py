"""The place of a pod among the pods of its trial: its number, and where node 0 listens. Runs in the pod.

The pod of node 0 is reached by the name that the object's controller gives it, at a port that is always the same. Where
pods have no names, a service of the kind of object tells the addresses of all.

Where pods are made anew while a trial runs, its directory outlives them, and each new pod goes on there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import fields, wire
from jupyter_autotrain.agent.ranks.scheduler_hints import PROFILED_VARIABLE
from jupyter_autotrain.agent.trial.termination_causes import ENDED_BECAUSE
from jupyter_autotrain.agent.trial.trial_file import Layout

PORT = 29400
_MEET_S = 900  # for all pods; a trial that does not get all of its nodes is ended by the manager earlier
ADAPTDL = "adaptdl"
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
    names = fields.mapping(options.get("variables"))
    node = node_of(options, environ)
    address = environ.get(str(names.get("first_address")), "")
    if node and names.get("peers"):
        address = addresses(str(names["peers"]), environ)[0]
    port = environ.get(str(names.get("first_port")), "")
    first: list[object] = [address, int(port) if port.isdecimal() else PORT]
    return {"node_rank": node, "nodes": fields.integer(options.get("nodes"), 1), "first": first, "wait_s": _MEET_S}


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
    for role in fields.sequence(attempt.get("taskRoleStatuses")):
        for task in fields.sequence(fields.mapping(role).get("taskStatuses")):
            status = fields.mapping(fields.mapping(task).get("attemptStatus"))
            told.append(str(status.get("podIP") or ""))
    if not told or "" in told:
        raise PeersError(f"The barrier left {told.count('')} of {len(told)} pods without an address.")
    return told


ENDED_CODE = 143  # what schedulers take for a pod that ended since it was told to
_STOP_REASON = "The scheduler gives the trial other nodes: save a checkpoint and end; it goes on from there."
_OF_THE_TRIAL = frozenset({"SUCCEEDED", "CANCELLED"})
_LEAST_GRACE_S = 1.0
_NODES = "nodes"  # how many there were last, and at most
_RANK = "rank-"
_LAST_FRAMES_S = 5.0  # of the grace, for what is written last


def begin(directory: str, node: int, nodes: int, workers: int) -> bool:
    """Make the directory of a node ready to go on; its folder of checkpoints is that of all nodes.

    The status of the earlier pod is kept under another name, so that a supervisor starts. Where the number of nodes is
    another, ranks of other nodes than the first go on from what rank 0 has saved: their own may be another part now.

    Args:
        directory: Of this node.
        node: Which one this is.
        nodes: How many there are now.
        workers: How many ranks each node has.

    Returns:
        Whether there was an earlier pod.
    """
    if node == 0:
        _forget_other_ranks(directory, nodes, workers)
    if not os.path.exists(f"{directory}/{wire.STATUS_FILE}"):
        return False
    for name in (wire.STOP_FILE, wire.CANCEL_FILE, wire.LOCK_FILE):
        with contextlib.suppress(OSError):
            os.unlink(f"{directory}/{name}")
    os.replace(f"{directory}/{wire.STATUS_FILE}", f"{directory}/{wire.STATUS_FILE}-{_next_number(directory)}")
    return True


def _forget_other_ranks(directory: str, nodes: int, workers: int) -> None:
    """Remove the checkpoints of ranks of other nodes where their number has changed.

    This happens before the other nodes begin: they wait for the first.
    """
    checkpoints = f"{directory}/{wire.CHECKPOINTS}"
    before, most = _earlier_counts(directory)
    if before not in {0, nodes}:
        for name in os.listdir(checkpoints):
            rank = name[len(_RANK) :] if name.startswith(_RANK) else ""
            if rank.isdigit() and int(rank) >= workers:
                shutil.rmtree(f"{checkpoints}/{name}", ignore_errors=True)
    wire.write_atomically(f"{directory}/{_NODES}", f"{nodes} {max(nodes, most)}".encode(), sync=False)


def _earlier_counts(directory: str) -> tuple[int, int]:
    """Return the last number of nodes, and the greatest so far; 0 where there were none."""
    try:
        with open(f"{directory}/{_NODES}", encoding="utf-8") as file:
            before, most = file.read().split()
        return int(before), int(most)
    except (OSError, ValueError):
        return 0, 0


def _next_number(directory: str) -> int:
    begin_of_name = f"{wire.STATUS_FILE}-"
    return sum(1 for name in os.listdir(directory) if name.startswith(begin_of_name)) + 1


def ask_to_stop(directory: str) -> None:
    """Turn `should_stop()` of the cell true: it saves a checkpoint and ends itself."""
    with contextlib.suppress(OSError):
        wire.write_atomically(f"{directory}/{wire.STOP_FILE}", _STOP_REASON.encode())


def patience_s(grace_s: float) -> float:
    """Return the seconds that the cell may take to end itself, before its processes are told to."""
    return max(_LEAST_GRACE_S, grace_s - _LAST_FRAMES_S)


def ends_for_others(status: Mapping[str, object], *, is_told_to_end: bool) -> bool:
    """Tell whether a pod ends so that others go on with the trial; its final status is none of the trial then.

    A stop that the scheduler asks of one pod comes to all.
    """
    reason = str(status.get("reason") or "")
    if reason == _STOP_REASON:
        return True
    return is_told_to_end and (reason.startswith(ENDED_BECAUSE) or status.get("state") not in _OF_THE_TRIAL)


def variables(environ: Mapping[str, str], directory: str, storage: str) -> dict[str, str]:
    """Return the variables that tell AdaptDL's own library of folders, where the cell uses it."""
    if "ADAPTDL_JOB_ID" not in environ:
        return {}
    share = f"{storage}/share"
    with contextlib.suppress(OSError):
        os.makedirs(share, mode=0o700, exist_ok=True)
    found = {"ADAPTDL_CHECKPOINT_PATH": f"{directory}/{wire.CHECKPOINTS}", "ADAPTDL_SHARE_PATH": share}
    most = _earlier_counts(directory)[1]
    return {**found, PROFILED_VARIABLE: str(most)} if most else found


def node_count(environ: Mapping[str, str], variable: str, asked: int) -> int:
    """Return the present number of nodes of the trial; `asked` where no variable says it."""
    text = environ.get(variable, "")
    return int(text) if text.isdigit() else asked
