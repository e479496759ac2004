"""`backends add`, `edit` and `remove`: changes of the user's own file of profiles, checked before they are written."""

from __future__ import annotations

import argparse

from jupyter_autotrain import backends
from jupyter_autotrain.client import profile_changes
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import profile_editing
from jupyter_autotrain.header.document import resolve
from jupyter_autotrain.header.yaml_reader import load
from jupyter_autotrain.verbs.context import CommandContext


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
    change = profile_changes.added(context, name, {"type": arguments.type, **_settings(arguments)})
    change.save()
    command.write(f"{name} stands in {context.shown(change.file)} now. Check it: %autotrain backends check {name}\n")


def edit(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Change settings of a profile of the user's file; without any, show it."""
    context = backends.header_context(command.cwd, command.environ)
    name = _name(arguments, "edit NAME [HOST ...] [KEY=VALUE ...] [--unset KEY]")
    settings = _settings(arguments)
    if arguments.type is not None:
        settings["type"] = arguments.type
    if not settings and not arguments.unset:
        profiles, _ = context.profiles()
        definition = profile_changes.own_definition(context, profiles, name)
        text = definition.file.read_text(encoding="utf-8")
        command.write(f"{definition.location}\n{profile_editing.block_of(text, name)}")
        return
    change = profile_changes.changed(context, name, settings, arguments.unset or ())
    change.save()
    command.write(f"{name} is changed in {context.shown(change.file)}; experiments that run keep what they had.\n")


def remove(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Take a profile out of the user's file."""
    context = backends.header_context(command.cwd, command.environ)
    name = _name(arguments, "remove NAME")
    change = profile_changes.removed(context, name)
    change.save()
    command.write(f"{name} is removed from {context.shown(change.file)}; experiments that run there go on.\n")


def _name(arguments: argparse.Namespace, form: str) -> str:
    if arguments.name is None:
        raise AutotrainError(
            "%autotrain backends: a name is missing.",
            f"Expected: %autotrain backends {form}",
            "See: %autotrain help backends",
        )
    return str(arguments.name)


def _settings(arguments: argparse.Namespace) -> dict[str, JsonValue]:
    """What the words and `--set` say; no host has an equals sign in its name."""
    hosts: list[JsonValue] = [word for word in arguments.words if "=" not in word]
    pairs = [word for word in arguments.words if "=" in word]
    found: dict[str, JsonValue] = {"hosts": hosts} if hosts else {}
    for text in (*pairs, *(arguments.set or ())):
        key, equals, value = text.partition("=")
        document = load([(1, f"{key}: {value}")])
        if not equals or document.faults or key not in document.data:
            raise AutotrainError(
                f"{text!r} cannot be read.", "KEY=VALUE, as in port=2222.", "See: %autotrain help backend"
            )
        found[key] = resolve(document.data[key])  # type: ignore[assignment]  # plain YAML is plain JSON
    return found
