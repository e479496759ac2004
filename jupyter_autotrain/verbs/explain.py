"""Verbs that explain: `why`, `check`, `config`, `schema`, `doctor`."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import dataclass

from jupyter_autotrain import backends as backend_types
from jupyter_autotrain import header
from jupyter_autotrain.core.json import to_json
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.verbs import doctor as checks
from jupyter_autotrain.verbs.backend_checks import check as check_backend
from jupyter_autotrain.verbs.backends import backends
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import write_json
from jupyter_autotrain.verbs.repair import repair_store, stop_strays


def why(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print one sentence per trial that waits or has failed."""
    experiment = command.find(arguments.experiment)
    reasons = experiment.why()
    if arguments.json:
        write_json(command, reasons)
        return
    reasons = reasons or [f"{experiment.name} is {experiment.state}: no trial is waiting and none failed."]
    command.present(Table([""], [(reason,) for reason in reasons]))


def check(command: CommandContext, arguments: argparse.Namespace) -> bool | None:
    """Check a header file against the schema, or one backend by a round trip, or whether each can be used."""
    if arguments.file is None:
        return backends(command, arguments)
    context = backend_types.header_context(command.cwd, command.environ)
    if not (command.cwd / arguments.file).exists() and arguments.file in context.profiles()[0].names():
        return check_backend(command, argparse.Namespace(name=arguments.file, words=[], json=arguments.json))
    parsed = header.parse_cell(f"--file {shlex.quote(arguments.file)}", "", context)
    backend = ", ".join(choice.profile.name for choice in parsed.header.choices)
    if arguments.json:
        write_json(command, {"file": arguments.file, "valid": True, "backend": backend})
        return None
    command.write(f"{arguments.file}: a valid header for backend {backend!r}.\n")
    return None


def config(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print the value of a key and its origin; without a key, all values that are not defaults."""
    context = backend_types.header_context(command.cwd, command.environ)
    keys = [arguments.explain] if arguments.explain else header.known_keys(context.schema)
    settings = [header.explain(key, context) for key in keys]
    if not arguments.explain:
        settings = [setting for setting in settings if setting.origin != "default"]
    home = _shorten(str(command.home.root), command)
    profiles = _profiles(context) if arguments.explain in {None, "backend"} else []
    if arguments.json:
        known = [to_json(profile) for profile in profiles]
        write_json(command, {"home": home, "settings": [to_json(setting) for setting in settings], "backends": known})
        return
    if not arguments.explain:
        command.write(f"home  {home}\n")
    for setting in settings:
        command.write(f"{setting}\n")
    for profile in profiles:
        hidden = f"; overrides {profile.hides}" if profile.hides else ""
        command.write(f"backend {profile.name}: {profile.type} ({profile.origin}{hidden})\n")
    for fault in context.profiles()[1] if arguments.explain in {None, "backend"} else []:
        command.write(f"{fault}\n")


@dataclass(frozen=True, slots=True)
class _ProfileOrigin:
    """Where a profile is defined, and which definition of the same name it hides."""

    name: str
    type: str
    origin: str
    hides: str


def _profiles(context: header.HeaderContext) -> list[_ProfileOrigin]:
    profiles, _ = context.profiles()
    found = []
    for name, definition in sorted(profiles.definitions.items()):
        profile, _ = profiles.find(name)
        of_type = f"the type {name}" if name in profiles.types else ""
        hides = str(definition.hides.location) if definition.hides else of_type
        found.append(_ProfileOrigin(name, profile.type if profile else "faulty", str(definition.location), hides))
    return found


def _shorten(path: str, command: CommandContext) -> str:
    user = command.environ.get("HOME", "")
    return f"~{path.removeprefix(user)}" if user and path.startswith(user) else path


def schema(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print the JSON Schema of the header, or of files of profiles."""
    known = backend_types.header_schema()
    found = header.json_schema(known) if arguments.of == "header" else header.profiles_schema(known.backend_types)
    command.write(json.dumps(found, indent=2) + "\n")


def doctor(command: CommandContext, arguments: argparse.Namespace) -> bool | None:
    """Check this installation, one line per check, and give whether all is well; or repair its store."""
    if arguments.repair:
        repair_store(command)
        return None
    if arguments.stop_strays:
        return stop_strays(command)
    results = checks.run_checks(command.home, command.cwd, command.environ)
    if arguments.json:
        write_json(command, [to_json(result) for result in results])
        return all(result.good for result in results)
    for result in results:
        command.write(f"{result.mark:4}  {result.name}: {result.text}\n")
        if not result.good and result.action:
            command.write(f"      {result.action}\n")
    bad = sum(not result.good for result in results)
    command.write("All checks passed.\n" if not bad else f"{bad} of {len(results)} checks need attention.\n")
    return not bad
