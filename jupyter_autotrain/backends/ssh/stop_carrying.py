"""Brings together how far the hosts of a trial are when a stop is asked for, so that all stop at the same call.

Each host that sees the request waits in `should_stop()` and tells which call that is (`worker.rank_agreement`). All
stop at the latest of these calls: the others still go on to it, which needs nothing of those that wait there.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from typing import cast

from jupyter_autotrain.backends.ssh.node_jobs import Nodes
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

_LONGEST_S = 20.0  # as long as the hosts wait; a process group of PyTorch agrees by itself, and tells nothing here
_FIRST_PAUSE_S = 0.05
_MOST_PAUSE_S = 1.0


def agree(nodes: Nodes, refs: Sequence[JobRef]) -> None:
    """Wait until all hosts have told their calls, and tell all of them the latest; returns without when some do not.

    Args:
        nodes: What is done on one host.
        refs: The jobs on the hosts.

    Raises:
        BackendUnavailableError: A host does not answer; the hosts decide by themselves.
    """
    deadline = time.monotonic() + _LONGEST_S
    pause_s = _FIRST_PAUSE_S
    calls: dict[str, int] = {}
    while time.monotonic() < deadline:
        for ref in refs:
            host = str(ref.data["host"])
            call = None if host in calls else _reached(nodes, ref)
            if call is not None:
                calls[host] = call
        if len(calls) == len(refs):
            for ref in refs:
                nodes.put(ref, wire.STOP_AT_FILE, str(max(calls.values())).encode())
            return
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _MOST_PAUSE_S)


def _reached(nodes: Nodes, ref: JobRef) -> int | None:
    link = nodes.link(str(ref.data["host"]))
    try:
        text = cast("str", link.ask("get", job=ref.data["job"], path=wire.STOP_REACHED_FILE, offset=0))
        return int(base64.b64decode(text))
    except BackendUnavailableError:
        raise
    except (AutotrainError, ValueError):  # it is not there yet
        return None
