"""The verb `backends`: list the backends, and what its actions do with one of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from jupyter_autotrain import backends as backend_types
from jupyter_autotrain.agent.json import JsonValue, to_json
from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.client.waiting import LOOK_S, PROBES_AT_ONCE, Patience
from jupyter_autotrain.core.backend import BackendContext, Probe
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.document import Fault
from jupyter_autotrain.verbs import backend_profiles
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.results import write_json

_ACTIONS: Final[Mapping[str, Callable[[CommandContext, argparse.Namespace], bool | None]]] = MappingProxyType(
    {
        "check": backend_profiles.check,
        "trust": backend_profiles.trust,
        "trust-project": backend_profiles.trust_project,
        "add": backend_profiles.add,
        "edit": backend_profiles.edit,
        "remove": backend_profiles.remove,
    }
)


def backends(command: CommandContext, arguments: argparse.Namespace) -> bool | None:
    """List every backend and whether it can be used from here, or do what the action says."""
    action = getattr(arguments, "action", None)
    if action is not None and action != "list":
        return _ACTIONS[action](command, arguments)
    rows, faults = _rows(command)
    if arguments.json:
        write_json(command, to_json(rows))
        return None
    heads = ["backend", "type", "hosts", "here", "running", "why", "from"]
    command.present(Table(heads, [row.cells() for row in rows], right=["running"]))
    for fault in faults:
        command.write(f"{fault}\n")
    return None


@dataclass(frozen=True, slots=True)
class _BackendRow:
    """A backend, whether it can be used from here, and how many trials it runs for this home."""

    name: str
    type: str
    hosts: tuple[str, ...]
    usable: bool
    reason: str
    running: int
    origin: str
    can: tuple[str, ...] = ()

    def cells(self) -> list[str]:
        here = "usable" if self.usable else "not usable"
        running = str(self.running) if self.running else ""
        return [self.name, self.type, " ".join(self.hosts), here, running, self.reason, self.origin]


def _rows(command: CommandContext) -> tuple[list[_BackendRow], list[Fault]]:
    """All backends, and what is wrong with the files that define them."""
    context = backend_types.header_context(command.cwd, command.environ)
    profiles, faults = context.profiles()
    running = _running(command)
    names = profiles.names()

    def row(name: str) -> _BackendRow:
        profile, wrong = profiles.find(name)
        definition = profiles.definitions.get(name)
        origin = str(definition.location) if definition else ""
        if profile is None:
            reason = "; ".join(map(str, wrong))
            return _BackendRow(name, "", (), usable=False, reason=reason, running=running.get(name, 0), origin=origin)
        return _probed(command, profile, running.get(name, 0), origin)

    with ThreadPoolExecutor(min(PROBES_AT_ONCE, len(names)), "probe") as threads:
        return list(threads.map(row, names)), [*faults, *context.uncounted()]


def _probed(command: CommandContext, profile: Profile, running: int, origin: str) -> _BackendRow:
    hosts = hosts_of(profile)
    try:
        probe, can = Patience(LOOK_S).ask_one(profile.name, partial(_probe, profile, command.home))
    except AutotrainError as error:
        reason = " ".join(filter(None, (error.found, error.action)))
        return _BackendRow(profile.name, profile.type, hosts, False, reason, running, origin)
    return _BackendRow(profile.name, profile.type, hosts, probe.usable, probe.reason, running, origin, can)


def _probe(profile: Profile, home: Home) -> tuple[Probe, tuple[str, ...]]:
    """Return whether a backend can be used from here, and what it can do."""
    with closing(backend_types.create(profile, BackendContext(home))) as backend:
        can = backend.capabilities
        return backend.probe(), tuple(key for key in can.__slots__ if getattr(can, key))


def hosts_of(profile: Profile) -> tuple[str, ...]:
    """Return the hosts that a profile names, or the one that leads to its machines."""
    hosts = profile.options.get("hosts") or [profile.options.get("via") or ""]
    return tuple(_host_name(host) for host in hosts if host) if isinstance(hosts, list | tuple) else ()


def _host_name(host: JsonValue) -> str:
    return str(host.get("host", "")) if isinstance(host, Mapping) else str(host)


def _running(command: CommandContext) -> dict[str, int]:
    """Return how many trials of this home run on each backend now."""
    found: dict[str, int] = {}
    for experiment, record in command.listed():
        if record.state is not ExperimentState.RUNNING:
            continue
        for trial in experiment.trials:
            if trial.state in {TrialState.PREPARING, TrialState.RUNNING}:
                name = trial.placement.backend or record.spec.backends[0].profile.name
                found[name] = found.get(name, 0) + 1
    return found
