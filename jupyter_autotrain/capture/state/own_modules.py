"""Modules that lie beside the notebook, as they are loaded now."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from pathlib import Path

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def file_of(name: str) -> Path | None:
    """The Python file of a loaded module of the user's; None for a module that an installation brings."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name.partition(".")[0] in {"__main__", "jupyter_autotrain"} or not isinstance(file, str):
        return None
    if not file.endswith(".py") or name.partition(".")[0] in sys.stdlib_module_names:
        return None
    if any(part in file for part in _INSTALLED):  # first what is quick: very many modules are asked for
        return None
    path = Path(file)
    folders = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return None if any(path.is_relative_to(folder) for folder in folders) else path


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
