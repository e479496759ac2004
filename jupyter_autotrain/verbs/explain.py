"""Verbs that explain: `why`, `check`, `backends`, `config`, `help`, `schema`, `doctor`."""

from __future__ import annotations

import argparse
import json
import shlex

from jupyter_autotrain import backends as places
from jupyter_autotrain import header
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs import doctor as checks
from jupyter_autotrain.verbs.desk import Desk
from jupyter_autotrain.verbs.grammar import grammar
from jupyter_autotrain.verbs.text import table

_HELP = """\
%%autotrain [NAME] [--backend B] [--gpus N] [-j CONCURRENCY] [--wait] [--dry-run] [-f FILE]
key: value               a header, optional; or lines `#| key: value`
---
report(step=1, loss=0.5) any Python; report() sends metrics, params holds the trial's parameters

Header keys: {keys}
  (%autotrain help KEY explains one)
Verbs: {verbs}
Experiments are named by name, name@N, a unique id prefix, -1 (newest) or _.
"""


def why(desk: Desk, arguments: argparse.Namespace) -> None:
    """Say in one sentence per trial why it waits or failed."""
    experiment = desk.find(arguments.experiment)
    told = experiment.why() or [f"{experiment.name} is {experiment.state}: no trial waits and none has failed."]
    desk.write("\n".join(told) + "\n")


def check(desk: Desk, arguments: argparse.Namespace) -> None:
    """Check a header file against the schema, or ask every backend whether it can be used."""
    if arguments.file is None:
        backends(desk, arguments)
        return
    context = header.Context(cwd=desk.cwd, environ=desk.environ, backends=places.names())
    parsed = header.parse_cell(f"--file {shlex.quote(arguments.file)}", "", context)
    desk.write(f"{arguments.file}: a valid header for backend {parsed.header.backend!r}.\n")


def backends(desk: Desk, _: argparse.Namespace) -> None:
    """List every place a trial can run, and whether it can be used from here."""
    rows = []
    for name in places.names():
        try:
            place = places.create(name, desk.home)
            probe = place.probe()
            can = [key for key in place.capabilities.__slots__ if getattr(place.capabilities, key)]
            rows.append([name, "usable" if probe.usable else "not usable", probe.reason, " ".join(can)])
        except AutotrainError as error:
            rows.append([name, "not usable", error.found, ""])
    desk.write(table(["backend", "here", "why", "can"], rows) + "\n")


def config(desk: Desk, arguments: argparse.Namespace) -> None:
    """Say what a key is set to and where that comes from; without a key, all that is not a default."""
    context = header.Context(cwd=desk.cwd, environ=desk.environ)
    if arguments.explain:
        desk.write(header.explain(arguments.explain, context) + "\n")
        return
    desk.write(f"home  {_shorten(str(desk.home.root), desk)}\n")
    for key in header.known_keys():
        told = header.explain(key, context)
        if "default" not in told:
            desk.write(told + "\n")


def _shorten(path: str, desk: Desk) -> str:
    user = desk.environ.get("HOME", "")
    return f"~{path.removeprefix(user)}" if user and path.startswith(user) else path


def help_text(desk: Desk, arguments: argparse.Namespace) -> None:
    """Explain a header key or a verb; without one, the whole on one screen."""
    verbs = grammar()
    if arguments.key is None:
        desk.write(_HELP.format(keys=", ".join(header.known_keys()), verbs=", ".join(verbs)))
    elif arguments.key in verbs:
        desk.write(verbs[arguments.key].format_help())
    else:
        desk.write(header.help_text(arguments.key) + "\n")


def schema(desk: Desk, _: argparse.Namespace) -> None:
    """Print the JSON Schema of the header."""
    desk.write(json.dumps(header.json_schema(), indent=2) + "\n")


def doctor(desk: Desk, _: argparse.Namespace) -> None:
    """Check this installation, one line per check."""
    results = checks.examine(desk.home)
    for result in results:
        desk.write(f"{'ok  ' if result.good else 'BAD '}  {result.name}: {result.text}\n")
        if not result.good and result.action:
            desk.write(f"      {result.action}\n")
    bad = sum(not result.good for result in results)
    desk.write("All well.\n" if not bad else f"{bad} of {len(results)} checks need attention.\n")
