"""Verbs that explain: `why`, `check`, `config`, `schema`, `doctor`."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import dataclass

from jupyter_autotrain import backends as backend_types
from jupyter_autotrain import header
from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.header.cell import Setting
from jupyter_autotrain.verbs import doctor as checks
from jupyter_autotrain.verbs.backend_profiles import check as check_backend
from jupyter_autotrain.verbs.backends import backends
from jupyter_autotrain.verbs.clean import repair_store, stop_strays
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.control import left_to_trials
from jupyter_autotrain.verbs.results import write_json


def why(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print one sentence per trial that waits or has failed."""
    experiment = command.find(arguments.experiment)
    reasons = experiment.why()
    left = left_to_trials(command, experiment.id)
    if arguments.json:
        write_json(command, [*reasons, *left])
        return
    reasons = reasons or [f"{experiment.name} is {experiment.state}: no trial is waiting and none failed."]
    command.present(Table([""], [(reason,) for reason in [*reasons, *left]]))


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
    settings = _settings(arguments.explain, context)
    has_backends = arguments.explain in {None, "backend"}
    home = _shorten(str(command.home.root), command)
    profiles = _profiles(context) if has_backends else []
    if arguments.json:
        write_json(command, {"home": home, "settings": to_json(settings), "backends": to_json(profiles)})
        return
    lines = [] if arguments.explain else [f"home  {home}"]
    lines += map(str, [*settings, *profiles])
    if has_backends:
        lines += map(str, context.profiles()[1])
    command.write("".join(f"{line}\n" for line in lines))


def _settings(key: str | None, context: header.HeaderContext) -> list[Setting]:
    """Return one setting, or without a key all that are no defaults."""
    if key:
        return [header.explain(key, context)]
    settings = [header.explain(known, context) for known in header.known_keys(context.schema)]
    return [setting for setting in settings if setting.origin != "default"]


@dataclass(frozen=True, slots=True)
class _ProfileOrigin:
    """Where a profile is defined, and which definition of the same name it hides."""

    name: str
    type: str
    origin: str
    hides: str

    def __str__(self) -> str:
        hidden = f"; overrides {self.hides}" if self.hides else ""
        return f"backend {self.name}: {self.type} ({self.origin}{hidden})"


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
    bad = sum(not result.good for result in results)
    if arguments.json:
        write_json(command, to_json(results))
        return not bad
    for result in results:
        command.write(f"{result.mark:4}  {result.name}: {result.text}\n")
        if not result.good and result.action:
            command.write(f"      {result.action}\n")
    command.write("All checks passed.\n" if not bad else f"{bad} of {len(results)} checks need attention.\n")
    return not bad
