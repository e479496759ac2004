"""A trial whose pods are made anew while it runs: its directory outlives them, and each new pod goes on there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.scheduler_hints import PROFILED_VARIABLE
from jupyter_autotrain.agent.trial.termination_causes import ENDED_BECAUSE

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
