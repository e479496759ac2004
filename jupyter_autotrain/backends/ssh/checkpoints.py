"""The checkpoints of an earlier attempt, for the next one on any host: they stay where they are until then."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.backends import earlier_checkpoints
from jupyter_autotrain.backends.earlier_checkpoints import are_there, in_home
from jupyter_autotrain.backends.ssh import fetching
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.node_jobs import names_of_nodes
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendUnavailableError

_CARRIED = "carried"  # in the home's directory of the attempt: what comes from a host for another one


def from_last_saved(
    links: Mapping[str, HostLink], job_name: Callable[[str], str], trial: TrialSpec, context: BackendContext
) -> TrialSpec:
    """The trial, which goes on from the last attempt with checkpoints, in the home or on a host that answers.

    Args:
        links: The links to all hosts of the profile.
        job_name: Gives a job's name on its host.
        trial: The next attempt.
        context: The home.
    """
    silent: set[str] = set()

    def is_on_a_host(attempt: int) -> bool:
        jobs = names_of_nodes(job_name(trial.job_id_of(attempt)), trial.resources.nodes)
        return any(_has_any(links, host, jobs, silent) for host in links)

    found = earlier_checkpoints.from_last_saved(trial, context, is_on_a_host)
    if not silent or found.resume_attempt == trial.resume_attempt:
        return found
    note = f"goes on from attempt {found.resume_attempt}: later checkpoints may be on {', '.join(sorted(silent))}"
    return replace(found, resume_note=f"{note}, without an answer")


def _has_any(links: Mapping[str, HostLink], host: str, jobs: Sequence[str], silent: set[str]) -> bool:
    """Whether a host has checkpoints of any of these jobs; one that does not answer is asked once."""
    if host in silent:
        return False
    try:
        return any(_has_checkpoints(links[host], job) for job in jobs)
    except BackendUnavailableError:
        silent.add(host)
        return False


def have(
    links: Mapping[str, HostLink], host: str, earlier: str, trial: TrialSpec, context: BackendContext
) -> JsonObject:
    """Have the checkpoints of an earlier attempt on a host; gives what `trial.json` says about them.

    Args:
        links: The links to all hosts of the profile.
        host: Where the next attempt begins.
        earlier: The name of the earlier attempt, on this host or another.
        trial: The next attempt.
        context: The home, where those of an attempt on another backend are.

    Raises:
        BackendUnavailableError: The host cannot be reached.
        BackendError: It cannot take them, or another host cannot give them.
    """
    if _has_checkpoints(links[host], earlier):
        return {}
    owner, silent = _owner({name: link for name, link in links.items() if name != host}, earlier)
    if owner is not None:
        carried = context.directory(trial, trial.resume_attempt) / _CARRIED / earlier.rpartition("/")[2]
        return {"resume_from": _carry(owner, links[host], earlier, carried)}
    if found := in_home(context, trial):
        return {"resume_from": links[host].sent.send_checkpoints(found)}
    if silent:
        names = ", ".join(silent)
        return {"resume_note": f"begins anew: its checkpoints may be on {names}, without an answer"}
    return {}


def _owner(links: Mapping[str, HostLink], earlier: str) -> tuple[HostLink | None, list[str]]:
    """The link to the host that has the checkpoints, and the hosts that do not answer."""
    silent: list[str] = []
    for name, link in links.items():
        try:
            if _has_checkpoints(link, earlier):
                return link, silent
        except BackendUnavailableError:
            silent.append(name)
    return None, silent


def _carry(owner: HostLink, link: HostLink, earlier: str, carried: Path) -> str:
    """From host to host by a folder of their own: what was cut goes on there, and is never taken for all of them."""
    fetching.fetch(owner, earlier, wire.CHECKPOINTS, carried)
    there = link.sent.send_checkpoints(carried)
    shutil.rmtree(carried, ignore_errors=True)
    return there


def _has_checkpoints(link: HostLink, job: str) -> bool:
    return are_there(lambda: fetching.sizes(link, job, wire.CHECKPOINTS))
