"""The places of modules: the user's own, and the folders where the interpreter keeps the others."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

_NEVER = frozenset({"__main__", "jupyter_autotrain"})
_SITE = f"{os.sep}site-packages{os.sep}"
_DIST = f"{os.sep}dist-packages{os.sep}"


@cache
def module_folders() -> tuple[Path, ...]:
    """Return the folders of the standard library and of installed packages.

    They never change while Python runs.
    """
    found = set(map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
    return tuple(map(Path, sorted(filter(None, found))))


def file_of(name: str) -> Path | None:
    """Return the Python file of a loaded module of the user's; None for a module that an installation brings."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str) or _SITE in file or _DIST in file:  # the most frequent case
        return None
    package = name.partition(".")[0]
    if not file.endswith(".py") or package in sys.stdlib_module_names or package in _NEVER:
        return None
    path = Path(file)
    return None if any(map(path.is_relative_to, module_folders())) else path
