"""Completion in the header of a `%%autotrain` cell, by IPython's matcher interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import backends as places
from jupyter_autotrain import header

_NAME = "autotrain_header_matcher"


def install(shell: InteractiveShell, backends: Callable[[], Sequence[str]] = places.names) -> None:
    """Add the matcher to a shell, once.

    Args:
        shell: The running IPython.
        backends: Gives the names of the places that can be used.
    """
    remove(shell)

    def autotrain_header_matcher(context: CompletionContext) -> SimpleMatcherResult:
        return match(context, backends())

    autotrain_header_matcher.__qualname__ = _NAME
    shell.Completer.custom_matchers.append(context_matcher(identifier=_NAME, priority=100)(autotrain_header_matcher))


def remove(shell: InteractiveShell) -> None:
    """Take the matcher out again."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "__qualname__", "") != _NAME]


def match(context: CompletionContext, backends: Sequence[str]) -> SimpleMatcherResult:
    """Complete where the cursor stands in the first line or the header of a `%%autotrain` cell; else nothing."""
    if not context.full_text.startswith(header.MAGIC):
        return {"completions": []}
    rows = context.full_text.split("\n")
    offset = sum(len(row) + 1 for row in rows[: context.cursor_line]) + context.cursor_position
    found = header.completions(context.full_text, offset, backends)
    return {
        "completions": [SimpleCompletion(text, type="keyword") for text in found.matches],
        "matched_fragment": context.full_text[found.start : offset],
        "suppress": found.sure,
        "ordered": True,
    }
