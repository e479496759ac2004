"""Where the interpreter keeps modules that are not the user's own."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path


@cache
def module_folders() -> tuple[Path, ...]:
    """The folders of the standard library and of installed packages; they never change while Python runs."""
    found = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(Path(path) for path in sorted(filter(None, found)))
