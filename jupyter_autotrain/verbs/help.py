"""The verb `help`: a header key, a verb, a name of the cell, or an overview on one screen."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable

from jupyter_autotrain import backends, header
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.core.table import WIDTH, Table
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.cell_names import CELL_NAMES
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.grammar import grammar

_HELP = """\
%%autotrain [NAME] [--backend B] [--gpus N] [-j CONCURRENCY] [--wait]
            [--check] [--dry-run] [-f FILE]
key: value               a header, optional; or lines `#| key: value`
---
report(step=1, loss=0.5) any Python; report() sends metrics, params holds
                         the trial's parameters

Header keys (%autotrain help KEY explains one):
{keys}
Verbs (%autotrain help VERB explains one):
{verbs}
In the cell (%autotrain help report explains one):
{names}

Experiments are named by name, name@N, a unique id prefix, -1 (the newest of
this notebook; in a shell, of all) or _. Without a name a verb takes that
newest one.
"""


def help_text(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Explain a header key, a verb or a name of the cell; without one, print the overview."""
    verbs = grammar()
    schema = backends.header_schema()
    key = arguments.key
    if key is None:
        groups = {**header.KEY_GROUPS, "of one place": schema.backend_sections}
        shown = Table(["", ""], [(f"  {title}", ", ".join(keys)) for title, keys in groups.items()]).text()
        command.write(_HELP.format(keys=shown, verbs=_list(verbs), names=_list(CELL_NAMES)))
    elif key in verbs:
        command.write(verbs[key].format_help())
    elif key in CELL_NAMES:
        command.write(f"{CELL_NAMES[key]}\n")
    else:
        command.write(_key_help(key, schema, [*header.known_keys(schema), *verbs, *CELL_NAMES]) + "\n")


def _list(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _key_help(key: str, schema: type[header.Header], known: list[str]) -> str:
    if key in header.known_keys(schema):
        return header.help_text(key, schema)
    near = closest_match(key, known)
    raise AutotrainError(
        f"%autotrain help: there is no {key!r}.",
        f"Did you mean {near!r}?" if near else "Expected a header key, a verb, or a name of the cell.",
        "See: %autotrain help",
    )
