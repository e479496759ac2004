"""Where the ranks of a trial on several hosts find this host: an address and free ports, the same at each request."""

from __future__ import annotations

import json
import os
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.worker import ports

_FILE = f"{wire.CONTROL}/endpoint"


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
