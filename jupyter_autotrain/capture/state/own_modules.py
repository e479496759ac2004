"""Modules that lie beside the notebook, as they are loaded now."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from jupyter_autotrain.capture.installed import module_folders

_NEVER = frozenset({"__main__", "jupyter_autotrain"})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def loaded() -> list[str]:
    """The names of all of them, sorted."""
    return sorted(name for name in list(sys.modules) if file_of(name) is not None)


def file_of(name: str) -> Path | None:
    """The Python file of a loaded module of the user's; None for a module that an installation brings."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str) or any(part in file for part in _INSTALLED):  # the most frequent case
        return None
    package = name.partition(".")[0]
    if not file.endswith(".py") or package in sys.stdlib_module_names or package in _NEVER:
        return None
    path = Path(file)
    return None if any(path.is_relative_to(folder) for folder in module_folders()) else path


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
