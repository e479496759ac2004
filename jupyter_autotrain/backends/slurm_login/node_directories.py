"""Of a trial on several nodes: each node but the first has a directory of its own inside the trial directory.

The streams of its ranks are links to those in the trial directory. Runs on the login node.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.backends.local.status import Status, UnknownError
from jupyter_autotrain.worker.slurm_task import NODES


def directories(directory: Path) -> list[Path]:
    """Those of all nodes but the first, in their order."""
    with contextlib.suppress(OSError):
        return sorted((directory / NODES).iterdir(), key=lambda path: path.name.zfill(6))
    return []


def have_ended(directory: Path) -> bool:
    """Whether the supervisors of all other nodes have written their ends; what they say is complete then."""
    for path in directories(directory):
        try:
            status = statuses.read(path)
        except UnknownError:
            return False
        if status is None or not statuses.is_final(status):
            return False
    return True


def first_failure(directory: Path, status: Status) -> Status:
    """What a trial ended by: where its first node was only ended, the status of the node that failed first."""
    if status["state"] not in {"PREEMPTED", "FAILED"}:
        return status
    failed = [status] if status["state"] == "FAILED" else []
    for path in directories(directory):
        with contextlib.suppress(UnknownError):
            found = statuses.read(path)
            if found is not None and found["state"] == "FAILED":
                failed.append(found)
    if not failed:
        return status
    first = min(failed, key=_failed_s)
    told = ("state", "reason", "traceback", "cell_line", "kind", "exit_code", "signal")
    return {**status, **{name: first[name] for name in told if name in first}}


def _failed_s(status: Status) -> float:
    """When the rank failed that the status names; its node may have ended much later."""
    return float(str(status.get("failed_s") or status.get("ended_s") or 0.0))
