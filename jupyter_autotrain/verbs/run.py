"""Runs a verb: finds its function, parses its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Final, TypeAlias

from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.grammar import grammar

# A verb gives False when it ran and what it looked at is not well, as a backend that fails its check.
Verb: TypeAlias = Callable[[CommandContext, argparse.Namespace], bool | None]

# What other tools call a verb, where no verb is spelled nearly so.
_MEANT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cancel": "stop", "delete": "clean", "download": "pull", "history": "ls", "info": "show", "jobs": "ls",
        "kill": "stop", "list": "ls", "metrics": "compare", "plot": "show", "ps": "ls", "remove": "clean",
        "rerun": "retry", "results": "best", "rm": "clean", "runs": "ls", "view": "show",
    }
)  # fmt: skip

# The function of each verb. Its module is imported when it is used: `ls` needs neither header nor capture.
_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ls": "results:ls",
        "status": "results:ls",
        "show": "results:show",
        "attach": "results:show",
        "logs": "outputs:logs",
        "wait": "control:wait",
        "stop": "control:stop",
        "retry": "control:retry",
        "resume": "control:resume",
        "update": "control:update",
        "continue": "control:continue_from",
        "clean": "clean:clean",
        "best": "results:best",
        "compare": "results:compare",
        "export": "outputs:export",
        "report": "outputs:report",
        "load": "results:load",
        "pull": "outputs:pull",
        "track": "outputs:track",
        "label": "labels:label",
        "why": "explain:why",
        "stacks": "debugging:stacks",
        "debug": "debugging:debug",
        "check": "explain:check",
        "backends": "backends:backends",
        "session": "session:session",
        "config": "explain:config",
        "help": "help:help_text",
        "schema": "explain:schema",
        "doctor": "explain:doctor",
        "import": "importing:import_experiment",
        "plan": "plan:plan",
        "calibrate": "plan:calibrate",
        "mcp": "agents:mcp",
    }
)
VERBS: Final = tuple(_FUNCTIONS)
_HELP = frozenset({"-h", "--help"})


def run(arguments: Sequence[str], command: CommandContext) -> bool:
    """Run one verb; no arguments mean `ls`.

    Returns:
        Whether what was asked for is well: the backend works, the experiment that was waited for has succeeded.

    Raises:
        AutotrainError: For an unknown verb or bad arguments, with the nearest match; and whatever the verb raises.
    """
    verb, *words = _checked(list(arguments) or ["ls"])
    known = _parsed(verb, words)
    if getattr(known, "json", False):
        command = replace(command, note=str)
    return _function(verb)(command, known) is not False


def _checked(words: list[str]) -> list[str]:
    """Return a known verb and its arguments; `--help` anywhere becomes the verb `help`."""
    if half := next((word for word in words if not _is_whole(word)), None):
        raise AutotrainError(f"%autotrain: {half!r} has a lone surrogate.", "Whole characters.", "Write it again.")
    if words[0] in _HELP:
        words[0] = "help"
    if words[0] not in VERBS:
        near = _MEANT.get(words[0], "") or closest_match(words[0], VERBS)
        guess = f" Did you mean {near!r}?" if near else ""
        raise AutotrainError(
            f"%autotrain: there is no verb {words[0]!r}.",
            f"Expected one of: {', '.join(VERBS)}.{guess}",
            "See: %autotrain help",
        )
    return ["help", words[0]] if _HELP & set(words[1:]) else words


def _parsed(verb: str, words: Sequence[str]) -> argparse.Namespace:
    """Parse a verb's arguments; `-1` names the newest experiment, which argparse would take for a flag."""
    guarded = [f"\0{word}" if word.startswith("-") and word[1:].isdigit() else word for word in words]
    known = grammar()[verb].parse_intermixed_args(guarded)
    experiment = getattr(known, "experiment", None)
    if isinstance(experiment, str):
        known.experiment = experiment.lstrip("\0")
    elif experiment:
        known.experiment = [word.lstrip("\0") for word in experiment]
    return known


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
