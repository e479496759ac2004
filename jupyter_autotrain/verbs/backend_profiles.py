"""`backends add`, `edit` and `remove`: changes of the user's own file of profiles, checked before they are written."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import HeaderContext, profile_editing
from jupyter_autotrain.header.document import resolve
from jupyter_autotrain.header.faults import combined_error
from jupyter_autotrain.header.profile_files import USER_FILE, Definition, defined_in
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.header.yaml_reader import load
from jupyter_autotrain.verbs.context import CommandContext


def add(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Write a new profile into the user's file."""
    context = backends.header_context(command.cwd, command.environ)
    profiles, faults = context.profiles()
    if faults:
        raise combined_error(faults)
    name = _name(arguments, "add NAME --type TYPE [HOST ...] [KEY=VALUE ...]")
    if known := profiles.definitions.get(name):
        raise AutotrainError(
            f"There is a profile {name!r} already ({known.location}).",
            "A name that is not taken.",
            f"Change it: %autotrain backends edit {name} ...; or remove it: %autotrain backends remove {name}",
        )
    if arguments.type is None:
        raise AutotrainError(
            f"The profile {name!r} has no type.", f"One of: {', '.join(profiles.types)}.", "Add it, as in `--type ssh`."
        )
    settings = {"type": arguments.type, **_settings(arguments)}
    file = _user_file(context)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    _write(context, profiles, file, profile_editing.added(text, name, settings), name)
    command.write(f"{name} stands in {context.shown(file)} now. Check it: %autotrain backends check {name}\n")


def edit(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Change settings of a profile of the user's file; without any, show it."""
    context = backends.header_context(command.cwd, command.environ)
    profiles, _ = context.profiles()
    name = _name(arguments, "edit NAME [HOST ...] [KEY=VALUE ...] [--unset KEY]")
    definition = _own(context, profiles, name)
    settings = _settings(arguments)
    if arguments.type is not None:
        settings["type"] = arguments.type
    text = definition.file.read_text(encoding="utf-8")
    if not settings and not arguments.unset:
        command.write(f"{definition.location}\n{profile_editing.block_of(text, name)}")
        return
    changed = profile_editing.changed(text, name, settings, arguments.unset or ())
    _write(context, profiles, definition.file, changed, name)
    command.write(f"{name} is changed in {context.shown(definition.file)}; experiments that run keep what they had.\n")


def remove(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Take a profile out of the user's file."""
    context = backends.header_context(command.cwd, command.environ)
    profiles, _ = context.profiles()
    name = _name(arguments, "remove NAME")
    definition = _own(context, profiles, name)
    text = profile_editing.removed(definition.file.read_text(encoding="utf-8"), name)
    _replace(definition.file, text)
    command.write(f"{name} is removed from {context.shown(definition.file)}; experiments that run there go on.\n")


def _name(arguments: argparse.Namespace, form: str) -> str:
    if arguments.name is None:
        raise AutotrainError(
            "%autotrain backends: a name is missing.",
            f"Expected: %autotrain backends {form}",
            "See: %autotrain help backends",
        )
    return str(arguments.name)


def _own(context: HeaderContext, profiles: Profiles, name: str) -> Definition:
    """A profile of the user's own file."""
    definition = profiles.definitions.get(name)
    if definition is None:
        _, faults = profiles.find(name)
        if faults:
            raise combined_error(faults)
        raise AutotrainError(
            f"{name!r} is a type of backend, and no file defines it.",
            f"A profile; yours: {', '.join(profiles.definitions) or 'none'}.",
            f"Make one of that name: %autotrain backends add {name} --type {name} ...",
        )
    if definition.file != context.user_file(USER_FILE):
        raise AutotrainError(
            f"The profile {name!r} stands in a file that others share ({definition.location}).",
            f"A profile of your own {USER_FILE}.",
            "Change it there by hand.",
        )
    return definition


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


def _user_file(context: HeaderContext) -> Path:
    folder = context.config_folder()
    if folder is None:
        raise AutotrainError(
            "There is no home folder for your profiles.", "HOME or JUPYTER_CONFIG_DIR in the environment.", "Set it."
        )
    return folder / USER_FILE


def _write(context: HeaderContext, profiles: Profiles, file: Path, text: str, name: str) -> None:
    """Write the file, unless the profile would be faulty in it."""
    rows = list(enumerate(text.split("\n"), 1))
    document = load(rows, f"{context.shown(file)} as it would be", file.parent)
    defined: Mapping[str, Definition] = defined_in(document, (), file)
    _, faults = Profiles(profiles.types, profiles.models, defined, context.cwd).find(name)
    if document.faults or faults:
        raise combined_error([*document.faults, *faults])
    _replace(file, text)


def _replace(file: Path, text: str) -> None:
    target = file.resolve()  # it may be a link into a repository of settings
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    wire.write_atomically(str(target), text.encode())
