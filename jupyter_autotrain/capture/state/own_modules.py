"""Modules that lie beside the notebook, as they are loaded now."""

from __future__ import annotations

import ast
import contextlib
import marshal
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.installed import file_of
from jupyter_autotrain.capture.syntax.codes import live_codes, same_code, with_nested
from jupyter_autotrain.core import system
from jupyter_autotrain.core.clock import BootTime

_CLOCKS_DIFFER_S = 2.0
_HEADER_BYTES = 16  # of a compiled file


def loaded() -> list[str]:
    """The names of all of them, sorted."""
    return sorted(name for name in list(sys.modules) if file_of(name) is not None)


def edited(names: Iterable[str]) -> list[Path]:
    """The files among these modules' that were changed after their import: trials run another text than this kernel.

    All statements are compared where Python has kept what it compiled at the import, else the functions and methods
    that are loaded. A file that is older than this process is not looked at.
    """
    started_s = time.time() - BootTime.now().at_s + system.look(os.getpid()).created_s
    return [path for name in names if (path := file_of(name)) and _is_edited(sys.modules[name], path, started_s)]


def _is_edited(module: ModuleType, path: Path, started_s: float) -> bool:
    try:
        if path.stat().st_mtime < started_s - _CLOCKS_DIFFER_S:
            return False
        now = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError:
        return True
    except (OSError, ValueError):
        return False
    found = {code.co_qualname: code for code in with_nested([now])}
    loaded = [code for code in _loaded(module) if Path(code.co_filename).name == path.name]
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        loaded.append(marshal.loads(Path(str(module.__cached__)).read_bytes()[_HEADER_BYTES:]))  # noqa: S302 - Python's own
    return not all(code.co_qualname in found and same_code(code, found[code.co_qualname]) for code in loaded)


def _loaded(module: ModuleType) -> Iterator[CodeType]:
    """The code of its functions and of its classes' methods."""
    for value in list(vars(module).values()):
        if looking.attribute(value, "__module__") == module.__name__:
            parts = [*vars(value).values()] if isinstance(value, type) else [value]
            yield from (code for part in parts for code in live_codes(part, set()))


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
