"""`backends check` and `backends trust`: a true round trip, and trusting a host's key."""

from __future__ import annotations

import argparse

from jupyter_autotrain import backends
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.backend_check import CheckStep, HostKeyBackend
from jupyter_autotrain.core.json import to_json
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.faults import combined_error
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import write_json

_NAME_CHARS = 11  # the longest name of a step
_TOLD_S = 0.05  # shorter times are not shown


def profile_of(command: CommandContext, name: str) -> Profile:
    """The profile of a name.

    Raises:
        HeaderError: There is none, or it is faulty; with all faults of its file.
    """
    profiles, faults = backends.header_context(command.cwd, command.environ).profiles()
    profile, wrong = profiles.find(name)
    if profile is None:
        raise combined_error([*wrong, *faults])
    return profile


def check(command: CommandContext, arguments: argparse.Namespace) -> bool:
    """Check one backend from its name to a trial's metric, each step as it ends; give whether it works."""
    if arguments.name is None:
        raise _usage("check NAME [HOST ...]")
    profile = profile_of(command, arguments.name)
    steps = []
    for step in check_backend(profile, arguments.words):
        steps.append(step)
        if not arguments.json:
            command.write(_lines(step))
    if arguments.json:
        write_json(command, [to_json(step) for step in steps])
    else:
        command.write(_summary(profile.name, steps))
    return all(step.is_good for step in steps)


def _lines(step: CheckStep) -> str:
    node = f"{step.node}  " if step.node else ""
    head = f"{'ok  ' if step.is_good else 'BAD '} {node}{step.name:<{_NAME_CHARS}}  "
    took = f"  ({step.took_s:.1f} s)" if step.took_s and step.took_s >= _TOLD_S else ""
    action = f"{' ' * len(head)}{step.action}\n" if step.action else ""
    return f"{head}{step.text}{took}\n{action}"


def _summary(name: str, steps: list[CheckStep]) -> str:
    bad = [step for step in steps if not step.is_good]
    nodes = len({step.node for step in steps})
    if not bad:
        return f"{name} works: a trial ran on {count(nodes, 'node')}, and its metric came back.\n"
    failed = ", ".join(" at ".join(filter(None, (step.node, step.name))) for step in bad)
    return f"{name} does not work: failed {'' if bad[0].node else 'at '}{failed}.\n"


def trust(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Trust the key of a host that has the fingerprint given; without one, say which it has."""
    if arguments.name is None or not 1 <= len(arguments.words) <= 2:
        raise _usage("trust NAME HOST [FINGERPRINT]")
    host, *given = arguments.words
    profile = _trusting_profile(command, arguments.name, host)
    backend = backends.create(profile, BackendContext(command.home))
    try:
        if not isinstance(backend, HostKeyBackend):
            raise AutotrainError(
                f"Backend {profile.name!r} has no host keys.",
                "A backend that is reached by SSH.",
                f"Check it: %autotrain backends check {profile.name}",
            )
        if given:
            file = backend.trust(host, given[0])
            command.write(f"Trusted {host}: its key {given[0]} is now in {file}.\n")
            return
        kind, fingerprint = backend.host_key(host)
    finally:
        backend.close()
    command.write(
        f"{host} shows {kind} {fingerprint}.\n"
        f"If that is the host's own, run: %autotrain backends trust {profile.name} {host} {fingerprint}\n"
    )


def _trusting_profile(command: CommandContext, name: str, host: str) -> Profile:
    """The profile of a name; that of a type needs no more than the host."""
    profiles, _ = backends.header_context(command.cwd, command.environ).profiles()
    if name not in profiles.definitions and "hosts" in getattr(profiles.models.get(name), "model_fields", ()):
        return Profile(name, name, {"hosts": [host]})
    return profile_of(command, name)


def _usage(form: str) -> AutotrainError:
    return AutotrainError(
        "%autotrain backends: a word is missing.",
        f"Expected: %autotrain backends {form}",
        "See: %autotrain help backends",
    )
