"""The place where the other hosts of a trial find this one, and what a lost part of an elastic trial begins with."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_file
from jupyter_autotrain.agent.trial.trial_file import TrialFile

_FILE = f"{wire.CONTROL}/endpoint"
_KEPT = "trial-again.json"  # {"trial", "token"}, what an elastic trial begins again with; it has no other secrets


def endpoint(directory: Path, address: str, peer: str) -> list[object]:
    """Return the address by which other hosts reach this one, a free port of it, and a token for the trial's hosts.

    They are kept with the job, for its user alone, so that each request gets the same.

    Args:
        directory: The trial directory.
        address: The address as the profile has it; "": the one on the route to `peer`.
        peer: Another host of the trial, by an address that this one may know.

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
        (port,) = ports.find_free(1, found)
    except OSError as error:
        raise BackendError(
            f"No port can be had at the address {found!r}: {os.strerror(error.errno or 0)}.",
            "An address of this host that the other hosts of the trial reach.",
            "Set `address:` of the host in its profile.",
        ) from error
    (directory / wire.CONTROL).mkdir(mode=0o700, parents=True, exist_ok=True)
    told: list[object] = [found, port, secrets.token_hex(16)]
    wire.write_atomically(str(directory / _FILE), json.dumps(told).encode())
    return told


def keep(directory: Path, trial: TrialFile, token: str) -> None:
    """Keep all that an elastic trial needs to begin again after a restart of this host.

    Raises:
        OSError: It cannot be written.
    """
    wire.write_atomically(str(directory / _KEPT), json.dumps({"trial": trial, "token": token}).encode())


def prepare_again(directory: Path) -> tuple[str, str]:
    """Make the directory of a lost part ready to begin again; its streams and checkpoints go on.

    Returns:
        The path of its bundle, and the token of the trial; "" when it is not lost, or is not to begin again: it has
        secrets, whose values nobody here has.

    Raises:
        OSError: It cannot be read or changed.
    """
    status = statuses.read(directory)
    if status is None or status["state"] != str(TrialState.LOST):
        return "", ""
    kept = fields.mapping(files.read_json(str(directory), _KEPT))
    trial = trial_file.of_json(kept.get("trial"))
    if trial.get("secrets"):
        return "", ""
    for name in wire.FOLDERS:
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    for name in (wire.STATUS_FILE, wire.LOCK_FILE, wire.CANCEL_FILE):
        (directory / name).unlink(missing_ok=True)
    trial_file.write(trial, sync=True)
    return trial["bundle"], str(kept.get("token"))
