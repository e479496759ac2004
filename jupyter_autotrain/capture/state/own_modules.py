"""Modules that lie beside the notebook, as they are loaded now."""

from __future__ import annotations

import ast
import sys

from jupyter_autotrain.capture.installed import file_of


def loaded() -> list[str]:
    """The names of all of them, sorted."""
    return sorted(name for name in list(sys.modules) if file_of(name) is not None)


def read(name: str) -> tuple[ast.Module, str] | None:
    """The text of a loaded module of the user's, and the same parsed; None when there is none."""
    path = file_of(name)
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        return ast.parse(text), text
    except (OSError, SyntaxError, ValueError):
        return None
