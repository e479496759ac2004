"""Actions of `backends`: `add`, `edit`, `remove`, each checked before it is written, `check` and `trust`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from pydantic import BaseModel

from jupyter_autotrain import backends
from jupyter_autotrain.agent.json import JsonValue, to_json
from jupyter_autotrain.client import profile_changes
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.backend_check import CheckStep, HostKeyBackend
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import profile_editing, project_review, project_trust
from jupyter_autotrain.header.document import combined_error, resolve
from jupyter_autotrain.header.yaml_reader import load
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.results import write_json


def trust_project(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Agree to the project's file that has the digest given; without one, say what it would do and which it has."""
    context = backends.header_context(command.cwd, command.environ)
    found = project_review.review(context)
    if arguments.name is None and not arguments.yes:
        state = "trusted" if found.is_trusted else "not trusted yet"
        command.write(f"{found.shown} ({state}) would set:\n")
        command.write("".join(f"  {line}\n" for line in found.effects or ("nothing that needs trust",)))
        command.write(f"Where nobody can be asked: {project_trust.VARIABLE}={found.digest}\n")
        command.write(f"If you agree to all of it, run: {project_trust.COMMAND} {found.digest}\n")
        return
    record = project_review.agree(context, found.digest if arguments.name is None else arguments.name)
    command.write(f"{found.shown} is trusted until it changes (noted in {record}).\n")


_NAME_CHARS = 11  # the longest name of a step
_TOLD_S = 0.05  # shorter times are not shown


def profile_of(command: CommandContext, name: str) -> Profile:
    """Return the profile of a name.

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
        write_json(command, to_json(steps))
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
    failed = ", ".join(f"{step.node} at {step.name}" if step.node else step.name for step in bad)
    return f"{name} does not work: failed {'' if bad[0].node else 'at '}{failed}.\n"


def trust(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Trust the key of a host that has the fingerprint given; without one, say which it has."""
    if arguments.name is None or not 1 <= len(arguments.words) <= 2:
        raise _usage("trust NAME HOST [FINGERPRINT]")
    host, *given = arguments.words
    profile = _trusting_profile(command, arguments.name, host)
    with closing(backends.create(profile, BackendContext(command.home))) as backend:
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
    command.write(
        f"{host} shows {kind} {fingerprint}.\n"
        f"If that is the host's own, run: %autotrain backends trust {profile.name} {host} {fingerprint}\n"
    )


def _trusting_profile(command: CommandContext, name: str, host: str) -> Profile:
    """Return the profile of a name; that of a type needs no more than the host."""
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


_MOST_OPTIONS: Final = 6  # named in an error


def add(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Write a new profile into the user's file."""
    context = backends.header_context(command.cwd, command.environ)
    name = _name(arguments, "add NAME --type TYPE [HOST ...] [KEY=VALUE ...]")
    if arguments.type is None:
        raise AutotrainError(
            f"The profile {name!r} has no type.",
            f"One of: {', '.join(context.backends)}.",
            "Add it, as in `--type ssh`.",
        )
    model = context.profiles()[0].models.get(arguments.type)
    change = profile_changes.added(context, name, {"type": arguments.type, **_settings(arguments, model)})
    change.save()
    command.write(f"Added {name} to {context.shown(change.file)}. Check it: %autotrain backends check {name}\n")


def edit(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Change settings of a profile of the user's file; without any, show it."""
    context = backends.header_context(command.cwd, command.environ)
    name = _name(arguments, "edit NAME [HOST ...] [KEY=VALUE ...] [--unset KEY]")
    profiles, _ = context.profiles()
    profile, _ = profiles.find(name)
    settings = _settings(arguments, profiles.models.get(arguments.type or (profile.type if profile else "")))
    if arguments.type is not None:
        settings["type"] = arguments.type
    if not settings and not arguments.unset:
        definition = profile_changes.own_definition(context, profiles, name)
        text = definition.file.read_text(encoding="utf-8")
        command.write(f"{definition.location}\n{profile_editing.block_of(text, name)}")
        return
    change = profile_changes.changed(context, name, settings, arguments.unset or ())
    change.save()
    command.write(f"Changed {name} in {context.shown(change.file)}. Running experiments keep the old settings.\n")


def remove(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Take a profile out of the user's file."""
    context = backends.header_context(command.cwd, command.environ)
    name = _name(arguments, "remove NAME")
    change = profile_changes.removed(context, name)
    change.save()
    command.write(f"Removed {name} from {context.shown(change.file)}. Experiments running there continue.\n")


def _name(arguments: argparse.Namespace, form: str) -> str:
    if arguments.name is None:
        raise AutotrainError(
            "%autotrain backends: a name is missing.",
            f"Expected: %autotrain backends {form}",
            "See: %autotrain help backends",
        )
    return str(arguments.name)


def _settings(arguments: argparse.Namespace, model: type[BaseModel] | None) -> dict[str, JsonValue]:
    """Return what the words and `--set` say; no host has an equals sign in its name."""
    hosts: list[str] = []
    settings: dict[str, JsonValue] = {}
    for word in arguments.words:
        if "=" in word:
            settings |= _setting(word)
        else:
            hosts.append(word)
    for text in arguments.set or ():
        settings |= _setting(text)
    return (_host_settings(hosts, model) if hosts else {}) | settings


def _setting(text: str) -> dict[str, JsonValue]:
    """Return the setting that `KEY=VALUE` says."""
    key, equals, value = text.partition("=")
    document = load([(1, f"{key}: {value}")])
    if not equals or document.faults or key not in document.data:
        raise AutotrainError(f"{text!r} cannot be read.", "KEY=VALUE, as in port=2222.", "See: %autotrain help backend")
    return {key: resolve(document.data[key])}  # type: ignore[dict-item]  # plain YAML is plain JSON


def _host_settings(hosts: Sequence[str], model: type[BaseModel] | None) -> dict[str, JsonValue]:
    """Return the option that hosts are given by: those where trials run, or the one that leads there."""
    options = model.model_fields if model else {"hosts": None}
    if "hosts" in options:
        return {"hosts": list(hosts)}
    if "via" in options and len(hosts) == 1:
        return {"via": hosts[0]}
    named = " ".join(hosts)
    if "via" in options:
        raise AutotrainError(f"{named!r} are several hosts.", "One login node.", f"Name one, as in `via={hosts[0]}`.")
    raise AutotrainError(
        f"This type of backend takes no hosts, but {named!r} was given.",
        f"Options as KEY=VALUE: {', '.join(list(options)[:_MOST_OPTIONS]) or 'it has none'}.",
        "See: %autotrain help backend",
    )
