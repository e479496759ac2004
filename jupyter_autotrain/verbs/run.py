"""Runs a verb: finds its function, parses its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Final, TypeAlias

from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.grammar import grammar

# A verb gives False when it ran and what it looked at is not well, as a backend that fails its check.
Verb: TypeAlias = Callable[[CommandContext, argparse.Namespace], bool | None]

# The function of each verb. Its module is imported when it is used: `ls` needs neither header nor capture.
_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ls": "listing:ls",
        "status": "listing:ls",
        "show": "listing:show",
        "attach": "listing:show",
        "logs": "logs:logs",
        "wait": "control:wait",
        "stop": "control:stop",
        "retry": "control:retry",
        "clean": "clean:clean",
        "best": "results:best",
        "compare": "results:compare",
        "export": "exporting:export",
        "load": "results:load",
        "pull": "pulling:pull",
        "why": "explain:why",
        "check": "explain:check",
        "backends": "backends:backends",
        "config": "explain:config",
        "help": "help:help_text",
        "schema": "explain:schema",
        "doctor": "explain:doctor",
        "plan": "plan:plan",
    }
)
VERBS: Final = tuple(_FUNCTIONS)


def run(arguments: Sequence[str], command: CommandContext) -> bool:
    """Run one verb; no arguments mean `ls`.

    Returns:
        Whether what was asked for is well: the backend works, the experiment that was waited for has succeeded.

    Raises:
        AutotrainError: For an unknown verb or bad arguments, with the nearest match; and whatever the verb raises.
    """
    words = list(arguments) or ["ls"]
    if half := next((word for word in words if not _is_whole(word)), None):
        raise AutotrainError(f"%autotrain: {half!r} holds half a character.", "Whole characters.", "Write it again.")
    if words[0] in {"-h", "--help"}:
        words[0] = "help"
    if words[0] not in VERBS:
        near = closest_match(words[0], VERBS)
        guess = f" Did you mean {near!r}?" if near else ""
        raise AutotrainError(
            f"%autotrain: there is no verb {words[0]!r}.",
            f"Expected one of: {', '.join(VERBS)}.{guess}",
            "See: %autotrain help",
        )
    if {"-h", "--help"} & set(words[1:]):
        words = ["help", words[0]]
    # `-1` names the newest experiment; argparse takes it for a flag.
    words = [f"\0{word}" if word.startswith("-") and word[1:].isdigit() else word for word in words]
    known = grammar()[words[0]].parse_intermixed_args(words[1:])
    if isinstance(getattr(known, "experiment", None), str):
        known.experiment = known.experiment.lstrip("\0")
    elif getattr(known, "experiment", None):
        known.experiment = [word.lstrip("\0") for word in known.experiment]
    if getattr(known, "json", False):
        command = replace(command, note=str)
    return _function(words[0])(command, known) is not False


def _is_whole(word: str) -> bool:
    """Return whether a word can be encoded; bytes of file names that are no UTF-8 can."""
    try:
        word.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _function(verb: str) -> Verb:
    module, _, name = _FUNCTIONS[verb].partition(":")
    found: Verb = getattr(import_module(f"{__package__}.{module}"), name)
    return found
