"""Completion in a `%%autotrain` cell and after `%autotrain`, by IPython's matcher interface."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import header, verbs
from jupyter_autotrain.backends import header_context, header_schema
from jupyter_autotrain.errors import AutotrainError

_NAME = "autotrain_matcher"


def install(
    shell: InteractiveShell,
    experiments: Callable[[], Sequence[str]],
    backends: Callable[[], Mapping[str, str]] | None = None,
) -> None:
    """Add the matcher to a shell, once.

    Args:
        shell: The running IPython.
        experiments: Gives the names of the experiments, newest first.
        backends: Gives the names of the backends, each with where it is defined.
    """
    remove(shell)
    known = backends or _backends_here

    def autotrain_matcher(context: CompletionContext) -> SimpleMatcherResult:
        return match(context, known, experiments)

    autotrain_matcher.__qualname__ = _NAME
    shell.Completer.custom_matchers.append(context_matcher(identifier=_NAME, priority=100)(autotrain_matcher))


def remove(shell: InteractiveShell) -> None:
    """Remove the matcher."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "__qualname__", "") != _NAME]


def match(
    context: CompletionContext, backends: Callable[[], Mapping[str, str]], experiments: Callable[[], Sequence[str]]
) -> SimpleMatcherResult:
    """Complete a verb line, or the first line, the header and the names of a `%%autotrain` cell; nothing elsewhere."""
    rows = context.full_text.split("\n")
    line = rows[context.cursor_line][: context.cursor_position].lstrip()
    if line.startswith(f"{verbs.MAGIC} "):
        return _verb_line(line, experiments, backends)
    if not context.full_text.startswith(header.MAGIC):
        return {"completions": []}
    offset = sum(len(row) + 1 for row in rows[: context.cursor_line]) + context.cursor_position
    origins = backends()
    found = header.completions(context.full_text, offset, list(origins), header_schema())
    if found.matches:
        fragment = context.full_text[found.start : offset]
        titles = {text: found.title(text, "keyword") for text in found.matches}
        return _result({**titles, **_among(origins, titles)}, fragment, suppress=found.sure)
    return _cell_names(context.token)


def _backends_here() -> Mapping[str, str]:
    """Return the backends that a cell run now could name, and where each is defined."""
    return header_context(Path.cwd(), os.environ).profiles()[0].origins()


def _verb_line(
    line: str, experiments: Callable[[], Sequence[str]], backends: Callable[[], Mapping[str, str]]
) -> SimpleMatcherResult:
    try:
        matches = verbs.complete_verb(line, experiments, backends)
    except AutotrainError:
        # Completion cannot show an error; running the line does.
        matches = {}
    return _result(matches, line.rpartition(" ")[2], suppress=True)


def _among(origins: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    return {text: origin for text, origin in origins.items() if text in texts}


def _cell_names(token: str) -> SimpleMatcherResult:
    members = [f"trial.{name}" for name in verbs.CELL_NAMES if name != "trial"] if "." in token else []
    matches = [name for name in (*verbs.CELL_NAMES, *members) if token and name.startswith(token) and name != token]
    return _result(dict.fromkeys(matches, "function"), token, suppress=False)


def _result(matches: Mapping[str, str], fragment: str, *, suppress: bool) -> SimpleMatcherResult:
    """Return what IPython takes, and shows beside each text: what it means, in a few words."""
    # JupyterLab gives each completion one line, and would break this one.
    completions: list[SimpleCompletion] = []
    for text, title in matches.items():
        completions.append(SimpleCompletion(text, type=title.replace(" ", "\N{NO-BREAK SPACE}")))
    return {
        "completions": completions,
        "matched_fragment": fragment,
        "suppress": suppress,
        "ordered": True,
    }
