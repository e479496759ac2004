"""The end of a local job: by its supervisor where one lives, else from here; with a receipt of what was ended."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.service import status_resolution
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt, of_end
from jupyter_autotrain.agent.trial.status import Status, UnknownError

if TYPE_CHECKING:
    from jupyter_autotrain.agent.json import JsonValue

_STUCK_S = 15.0  # a living supervisor that takes this much longer than the grace is ended with the tree
_HELD_S = 1.0  # so is one that the trial stops again and again (SIGSTOP)
_LOOK_AGAIN_S = 0.005


def cancel(directory: Path, grace_s: float) -> CancelReceipt:
    """End a job's whole tree, and return when it is gone. Idempotent.

    Raises:
        BackendError: It is not known what there is to end, or whether it is gone.
    """
    begun = time.monotonic()
    try:
        status = status_resolution.resolve_status(directory)
    except UnknownError:
        status = None
    else:
        if status is None:
            return CancelReceipt(note="it was never started")
        if statuses.is_final(status):
            return of_end(status, 0.0, f"it had ended before: {status['state']}")
    try:
        _ask(directory, status, grace_s)
        return of_end(_ended(directory, status, grace_s), time.monotonic() - begun)
    except OSError as error:
        raise BackendError(f"The processes in {directory} cannot be looked at: {error.strerror}.") from error


def _ask(directory: Path, status: Status | None, grace_s: float) -> None:
    """Ask the supervisor to end the tree, and wait until it has, but not for one that is stuck."""
    request = json.dumps({"grace_s": grace_s, "reason": "Cancelled on request."}).encode()
    with contextlib.suppress(OSError):  # a full disk, or no such folder: the signal has to suffice
        wire.write_atomically(str(directory / wire.CANCEL_FILE), request)
    supervisor = status_resolution.identity(directory, status)
    if supervisor is None:
        return
    _send(supervisor, signal.SIGTERM)
    begun_s = time.monotonic()
    deadline_s = begun_s + grace_s + _STUCK_S
    while not _has_ended(directory, supervisor) and time.monotonic() < deadline_s:
        if _is_held(supervisor):
            if time.monotonic() > begun_s + _HELD_S:
                return
            _send(supervisor, signal.SIGCONT)  # while a signal holds it, it handles no other
        time.sleep(_LOOK_AGAIN_S)


def _is_held(supervisor: ProcessIdentity) -> bool:
    """Tell whether a signal such as SIGSTOP holds the supervisor."""
    try:
        return supervisor.is_alive() and system.look(supervisor.pid).is_stopped
    except OSError:
        return False


def _send(supervisor: ProcessIdentity, number: int) -> None:
    with contextlib.suppress(OSError):  # no descriptor left: the loop goes on and waits for its end
        processes.send_signal(supervisor, number)


def _has_ended(directory: Path, supervisor: ProcessIdentity) -> bool:
    """Tell whether the supervisor is gone, or has written the final status; a read that fails proves neither."""
    try:
        if not supervisor.is_alive():
            return True
        status = statuses.read(directory)
    except (OSError, UnknownError):
        return False
    return status is not None and statuses.is_final(status)


def _ended(directory: Path, status: Status | None, grace_s: float) -> Status:
    """Return the final status.

    Where none can be read, all that is left is ended from here, and a final status is written.
    """
    with contextlib.suppress(UnknownError):
        found = status_resolution.resolve_status(directory)
        if found is not None and statuses.is_final(found):
            return found
        status = found or status
    receipt = status_resolution.end_tree(directory, status or {}, grace_s)
    last: Status = (
        status or {"supervisor": status_resolution.identity_json(status_resolution.identity(directory, None))}
    ) | {
        "state": str(TrialState.CANCELLED),
        "reason": "Cancelled on request.",
        "ended_s": time.time(),
        "groups": [],
        "receipt": cast("JsonValue", receipt.to_json()),
    }
    status_resolution.write_final_status(directory, last)
    return last
