"""Completions after `%autotrain`: verbs, their options, names of experiments. Pure except for the names."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from jupyter_autotrain.verbs.cell_names import CELL_NAMES
from jupyter_autotrain.verbs.grammar import BACKEND_ACTIONS, grammar

MAGIC = "%autotrain"


def complete_verb(
    text: str, experiments: Callable[[], Sequence[str]], backends: Callable[[], Sequence[str]] = tuple
) -> tuple[str, ...]:
    """The words that fit at the end of a line.

    Args:
        text: The line up to the cursor, beginning with `%autotrain`.
        experiments: Gives the names of the experiments, newest first; called only where a name is expected.
        backends: Gives the names of the backends, likewise.
    """
    words = text.removeprefix(MAGIC).split(" ")[1:]
    if not words:
        return ()
    *before, word = words
    given = [one for one in before if one]
    if given[:1] == ["backends"] and len(given) <= 2 and not word.startswith("-"):
        known: Sequence[str] = BACKEND_ACTIONS if len(given) == 1 else backends()
    else:
        known = _verbs() if not given else _after(given, word, experiments)
    return tuple(dict.fromkeys(one for one in known if one.startswith(word) and one != word))


def _verbs() -> list[str]:
    return list(grammar())


def _after(given: Sequence[str], word: str, experiments: Callable[[], Sequence[str]]) -> Sequence[str]:
    parser = grammar().get(given[0])
    if parser is None:
        return ()
    actions = parser._actions  # noqa: SLF001 - argparse has no public list of its actions
    options = [action for action in actions if action.option_strings]
    option = next((action for action in options if given[-1] in action.option_strings), None)
    if option is not None and option.nargs != 0:
        return [str(choice) for choice in option.choices or ()]
    if word.startswith("-"):
        return [_longest(action) for action in options]
    return _positional(given[0], actions, experiments)


def _positional(
    verb: str, actions: Sequence[argparse.Action], experiments: Callable[[], Sequence[str]]
) -> Sequence[str]:
    if verb == "help":
        from jupyter_autotrain import backends, header  # noqa: PLC0415 - only this verb needs them, and they are heavy

        return [*grammar(), *header.known_keys(backends.header_schema()), *CELL_NAMES]
    takes_names = any(action.dest in {"experiment", "pattern"} for action in actions)
    return experiments() if takes_names else ()


def _longest(action: argparse.Action) -> str:
    return max(action.option_strings, key=len)
