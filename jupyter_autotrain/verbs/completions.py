"""Completions after `%autotrain`: verbs, their options, names of experiments. Pure except for the names."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jupyter_autotrain.verbs.grammar import BACKEND_ACTIONS, grammar
from jupyter_autotrain.verbs.help import CELL_NAMES

MAGIC = "%autotrain"
_NONE: Mapping[str, str] = MappingProxyType({})


def complete_verb(
    text: str, experiments: Callable[[], Sequence[str]], backends: Callable[[], Mapping[str, str]] = dict
) -> dict[str, str]:
    """Return the words that fit at the end of a line, each with what it means in a few words.

    Args:
        text: The line up to the cursor, beginning with `%autotrain`.
        experiments: Gives the names of the experiments, newest first; called only where a name is expected.
        backends: Gives the names of the backends, each with where it is defined, likewise.
    """
    words = text.removeprefix(MAGIC).split(" ")[1:]
    if not words:
        return {}
    *before, word = words
    known = _known([*filter(None, before)], word, experiments, backends)
    return {one: title for one, title in known.items() if one.startswith(word) and one != word}


def _known(
    given: Sequence[str],
    word: str,
    experiments: Callable[[], Sequence[str]],
    backends: Callable[[], Mapping[str, str]],
) -> Mapping[str, str]:
    """Return the words that may follow those that are given; `word` is what the next one begins with."""
    if not given:
        return _verbs()
    if given[0] == "backends" and len(given) <= 2 and not word.startswith("-"):
        return _words(BACKEND_ACTIONS) if len(given) == 1 else backends()
    return _after(given, word, experiments)


def _words(texts: Sequence[str], title: str = "keyword") -> dict[str, str]:
    return dict.fromkeys(texts, title)


def _verbs() -> dict[str, str]:
    return {verb: parser.description or "" for verb, parser in grammar().items()}


def _after(given: Sequence[str], word: str, experiments: Callable[[], Sequence[str]]) -> Mapping[str, str]:
    parser = grammar().get(given[0])
    if parser is None:
        return _NONE
    actions = parser._actions  # noqa: SLF001 - argparse has no public list of its actions
    for action in actions:
        if given[-1] in action.option_strings and action.nargs != 0:
            return _words([*map(str, action.choices or ())])
    if word.startswith("-"):
        return {_longest(action): action.help or "" for action in actions if action.option_strings}
    return _positional(given[0], actions, experiments)


def _positional(
    verb: str, actions: Sequence[argparse.Action], experiments: Callable[[], Sequence[str]]
) -> Mapping[str, str]:
    if verb == "help":
        from jupyter_autotrain import backends, header  # noqa: PLC0415 - only this verb needs them, and they are heavy

        keys = header.known_keys(backends.header_schema())
        return {**_verbs(), **_words(keys, "key of a header"), **_words([*CELL_NAMES], "name in a cell")}
    takes_names = any(action.dest in {"experiment", "pattern"} for action in actions)
    return _words(experiments(), "experiment") if takes_names else _NONE


def _longest(action: argparse.Action) -> str:
    return max(action.option_strings, key=len)
