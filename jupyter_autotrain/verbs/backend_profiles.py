"""`backends add`, `edit` and `remove`: changes of the user's own file of profiles, checked before they are written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel

from jupyter_autotrain import backends
from jupyter_autotrain.client import profile_changes
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import profile_editing
from jupyter_autotrain.header.document import resolve
from jupyter_autotrain.header.yaml_parts import load
from jupyter_autotrain.verbs.context import CommandContext

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
    """What the words and `--set` say; no host has an equals sign in its name."""
    hosts = [word for word in arguments.words if "=" not in word]
    pairs = [word for word in arguments.words if "=" in word]
    found = _host_settings(hosts, model) if hosts else {}
    for text in (*pairs, *(arguments.set or ())):
        key, equals, value = text.partition("=")
        document = load([(1, f"{key}: {value}")])
        if not equals or document.faults or key not in document.data:
            raise AutotrainError(
                f"{text!r} cannot be read.", "KEY=VALUE, as in port=2222.", "See: %autotrain help backend"
            )
        found[key] = resolve(document.data[key])  # type: ignore[assignment]  # plain YAML is plain JSON
    return found


def _host_settings(hosts: Sequence[str], model: type[BaseModel] | None) -> dict[str, JsonValue]:
    """The option that hosts are given by: those where trials run, or the one that leads there."""
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
