"""Where the ranks of a trial on several hosts find this host: an address and free ports, the same at each request."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.backends.local import status as statuses
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.worker import ports

_FILE = f"{wire.CONTROL}/endpoint"
_KEPT = "trial-again.json"  # what an elastic trial begins again with; it has no secrets


def endpoint(directory: Path, address: str, peer: str, count: int) -> list[object]:
    """The address that other hosts reach this one by, and free ports of it; kept with the job for the next request.

    Args:
        directory: The trial directory.
        address: The address as the profile has it; "": the one on the route to `peer`.
        peer: Another host of the trial, by an address that this one may know.
        count: How many ports.

    Raises:
        BackendError: The address is not one of this host.
        OSError: It cannot be kept.
    """
    try:
        kept = files.read_json(str(directory), _FILE)
    except (OSError, ValueError):
        kept = None
    if isinstance(kept, list):
        return kept
    found = address or ports.own_address(peer)
    try:
        free = ports.find_free(count, found) if found else ports.find_free(count, "")
    except OSError as error:
        raise BackendError(
            f"No port can be had at the address {found!r}: {os.strerror(error.errno or 0)}.",
            "An address of this host that the other hosts of the trial reach.",
            "Set `address:` of the host in its profile.",
        ) from error
    (directory / wire.CONTROL).mkdir(mode=0o700, parents=True, exist_ok=True)
    wire.write_atomically(str(directory / _FILE), json.dumps([found, free]).encode())
    return [found, free]


def keep(directory: Path, trial: Mapping[str, object]) -> None:
    """Keep what an elastic trial needs to begin again after a restart of this host.

    Raises:
        OSError: It cannot be written.
    """
    wire.write_atomically(str(directory / _KEPT), json.dumps(trial).encode())


def prepare_again(directory: Path) -> str:
    """Make the directory of a lost part ready to begin again; its streams and checkpoints go on.

    Returns:
        The path of its bundle; "" when it is not lost, or is not to begin again: it has secrets, whose values nobody
        here has.

    Raises:
        OSError: It cannot be read or changed.
    """
    status = statuses.read(directory)
    if status is None or status["state"] != str(TrialState.LOST):
        return ""
    trial = files.read_json(str(directory), _KEPT)
    if not isinstance(trial, dict) or trial.get("secrets"):
        return ""
    for name in wire.FOLDERS:
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    for name in (wire.STATUS_FILE, wire.LOCK_FILE, wire.CANCEL_FILE):
        (directory / name).unlink(missing_ok=True)
    wire.write_atomically(str(directory / wire.TRIAL_FILE), json.dumps(trial).encode())
    return str(trial["bundle"])
