"""The checkpoints of an earlier attempt, for the next one on any host: they stay where they are until then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.backends.ssh import fetching
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError


def have(links: Mapping[str, HostLink], host: str, earlier: str, kept: Path) -> JsonObject:
    """Have the checkpoints of an earlier attempt on a host; gives what `trial.json` says about them.

    Args:
        links: The links to all hosts of the profile.
        host: Where the next attempt begins.
        earlier: The name of the earlier attempt, on this host or another.
        kept: The earlier attempt's checkpoints in the home, as far as they were brought there.

    Raises:
        BackendUnavailableError: The host cannot be reached.
        BackendError: It cannot take them.
    """
    link = links[host]
    if _has_checkpoints(link, earlier):
        return {}
    silent = _bring_home({name: other for name, other in links.items() if name != host}, earlier, kept)
    if kept.is_dir() and any(kept.iterdir()):
        return {"resume_from": link.sent.send_checkpoints(kept)}
    if silent:
        names = ", ".join(silent)
        return {"resume_note": f"begins anew: its checkpoints may be on {names}, without an answer"}
    return {}


def _bring_home(links: Mapping[str, HostLink], earlier: str, kept: Path) -> list[str]:
    """Fetch the checkpoints from the host that has them; gives the hosts that do not answer."""
    silent = []
    for name, link in links.items():
        try:
            if _has_checkpoints(link, earlier):
                fetching.fetch(link, earlier, wire.CHECKPOINTS, kept)
                return []
        except BackendUnavailableError:
            silent.append(name)
    return silent


def _has_checkpoints(link: HostLink, job: str) -> bool:
    try:
        return bool(fetching.sizes(link, job, wire.CHECKPOINTS))
    except BackendUnavailableError:
        raise
    except AutotrainError:  # this host has never seen the attempt
        return False
