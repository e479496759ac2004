"""Finding out, from the trial directory alone, what became of a local job, and ending it."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path
from typing import cast

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.worker import groups, processes

Status = dict[str, JsonValue]
_STUCK_S = 15.0  # a living supervisor that takes this much longer than the grace is ended itself


def read(directory: Path) -> Status:
    """The status file; empty when there is none."""
    try:
        return cast("Status", json.loads((directory / wire.STATUS_FILE).read_bytes()))
    except (OSError, ValueError):
        return {}


def is_final(status: Status) -> bool:
    """True when the supervisor has said its last word."""
    return TrialState(str(status["state"])).is_final


def settled(directory: Path) -> Status:
    """The status; when the supervisor is gone without a last word: end what it left, and say that it is lost."""
    status = read(directory)
    if not status or is_final(status) or _lives(status):
        return status
    status = read(directory)  # its last word may have come between the two looks
    return status if is_final(status) else _lose(directory, status)


def _lives(status: Status) -> bool:
    return processes.is_alive(cast("processes.Identity", status["supervisor"]))


def _lose(directory: Path, status: Status) -> Status:
    receipt = _end_tree(directory, status, 0.0)
    boot = cast("list[JsonValue]", status["supervisor"])[2]
    why = "the machine was restarted" if boot != processes.boot_id() else "its supervisor was killed from outside"
    note = f" Processes that it left, now ended: {len(receipt.asked)}." if receipt.asked else ""
    changes: Status = {
        "state": str(TrialState.LOST),
        "reason": f"Lost: {why} while the trial ran.{note} `%autotrain retry` goes on from its last checkpoint.",
        "ended_s": time.time(),
        "groups": [],
        "receipt": cast("JsonValue", receipt.to_json()),
    }
    with contextlib.suppress(OSError):  # a full disk: the next look settles it again
        write(directory, status | changes)
    return status | changes


def write(directory: Path, status: Status) -> None:
    """Replace the status file."""
    wire.write_atomically(str(directory / wire.STATUS_FILE), json.dumps(status).encode())


def _end_tree(directory: Path, status: Status, grace_s: float) -> processes.Receipt:
    """End all processes of a job that has no supervisor any more; they are known by group and by environment."""
    folders = [str(folder) for folder in cast("list[JsonValue]", status.get("groups") or [])]
    here = str(directory)

    def members() -> set[int]:
        return processes.living(groups.members(folders)) | processes.marked(wire.TRIAL_VARIABLE, here)

    receipt = processes.end(members, grace_s)
    groups.remove(folders)
    groups.sweep()  # it may have been killed before it could write down its groups
    return receipt


def cancel(directory: Path, grace_s: float) -> CancelReceipt:
    """End a job's whole tree; returns when it is gone. Idempotent."""
    begun = time.monotonic()
    status = settled(directory)
    if not status:
        return CancelReceipt(note="it was never started")
    if is_final(status):
        return CancelReceipt(note=f"it had ended before: {status['state']}")
    request = json.dumps({"grace_s": grace_s, "reason": "Cancelled on request."}).encode()
    wire.write_atomically(str(directory / wire.CANCEL_FILE), request)
    supervisor = cast("processes.Identity", status["supervisor"])
    processes.send(supervisor, signal.SIGTERM)
    deadline = begun + grace_s + _STUCK_S
    while processes.is_alive(supervisor) and not is_final(read(directory)):
        if time.monotonic() > deadline:
            processes.send(supervisor, signal.SIGKILL)
        time.sleep(0.005)
    return _receipt(settled(directory), time.monotonic() - begun)


def _receipt(status: Status, elapsed_s: float) -> CancelReceipt:
    told = cast("dict[str, list[int]]", status.get("receipt") or {})
    cancelled = status["state"] == str(TrialState.CANCELLED)
    return CancelReceipt(
        pids_ended=tuple(told.get("ended", ())),
        pids_killed=tuple(told.get("killed", ())),
        pids_left=tuple(told.get("left", ())),
        elapsed_s=elapsed_s,
        note="" if cancelled else f"it ended by itself meanwhile: {status['state']}",
    )
