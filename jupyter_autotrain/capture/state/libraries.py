"""The libraries that a trial uses, and the modules beside the notebook among them as they are loaded now."""

from __future__ import annotations

import ast
import contextlib
import marshal
import os
import sys
import time
import types
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from jupyter_autotrain.agent import system
from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.installed import file_of
from jupyter_autotrain.capture.state.paths import top
from jupyter_autotrain.capture.syntax.codes import live_codes, same_code, with_nested
from jupyter_autotrain.core.clock import BootTime

_CLOCKS_DIFFER_S = 2.0
_HEADER_BYTES = 16  # of a compiled file


class UsedLibraries:
    """The packages that a trial uses; the standard library always counts as used.

    Args:
        direct: The packages that its code imports, or that its data needs.
    """

    def __init__(self, direct: Collection[str]) -> None:
        self.own = sorted(name for name in list(sys.modules) if file_of(name) is not None)
        self.direct = _with_own(direct, self.own)
        self._reached = set(self.direct)
        self._todo = sorted(self.direct)

    def __contains__(self, path: str) -> bool:
        """Tell whether a trial uses the package that a full name begins with."""
        package = top(path)
        return package in sys.stdlib_module_names or self.reaches(package)

    def reaches(self, package: str) -> bool:
        """Tell whether a trial uses a package, itself or by a package that it loads.

        One of the standard library counts too.
        """
        return self.loads(package) or self._is_open

    def loads(self, package: str) -> bool:
        """Tell whether a trial is known to use a package.

        It looks at no more loaded modules than it must.
        """
        while package not in self._reached and self._todo:
            fresh = {inner for module in self._members.get(self._todo.pop(), ()) for inner in _packages_in(module)}
            fresh -= self._reached
            self._reached |= fresh
            self._todo += sorted(fresh & set(self._members) - sys.stdlib_module_names)
        return package in self._reached

    @cached_property
    def _is_open(self) -> bool:
        """True when the trial is the first to load one of them: what it loads in turn is not known yet."""
        return any(name not in sys.modules and name not in sys.stdlib_module_names for name in self.direct)

    @cached_property
    def _members(self) -> dict[str, list[types.ModuleType]]:
        members: dict[str, list[types.ModuleType]] = {}
        for name, module in list(sys.modules.items()):
            if isinstance(module, types.ModuleType):  # anything may be put there
                members.setdefault(top(name), []).append(module)
        return members


def of(trees: Iterable[ast.Module], pickled: Iterable[Collection[str]]) -> UsedLibraries:
    """Return the packages that some code and the pickled values need."""
    names = {name for tree in trees for name in modules.imported(tree)}.union(*pickled)
    return UsedLibraries(set(map(top, names)) - {"jupyter_autotrain"})


def _with_own(direct: Collection[str], own: Collection[str]) -> frozenset[str]:
    """Return these packages, and those that the modules beside the notebook among them import."""
    known = set(direct)
    todo = set(direct)
    while todo:
        package = todo.pop()
        for name in own:
            found = read(name) if top(name) == package else None
            fresh = set(map(top, modules.imported(found[0]))) - known if found else set[str]()
            known |= fresh
            todo |= fresh
    return frozenset(known)


def _packages_in(module: types.ModuleType) -> Iterator[str]:
    """Yield the packages whose modules a module holds."""
    # No isinstance: it reads `__class__` of the values, which some compute, and there are very many.
    return (top(value.__name__) for value in list(vars(module).values()) if type(value) is types.ModuleType)


# Modules beside the notebook


def edited(names: Iterable[str]) -> list[Path]:
    """Return the files among these modules' that were changed after their import.

    Trials run another text of them than this kernel.

    All statements are compared where Python has kept what it compiled at the import, else the functions and methods
    that are loaded. A file that is older than this process is not looked at.
    """
    started_s = time.time() - BootTime.now().at_s + system.look(os.getpid()).created_s
    return [path for name in names if (path := file_of(name)) and _is_edited(sys.modules[name], path, started_s)]


def _is_edited(module: types.ModuleType, path: Path, started_s: float) -> bool:
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


def _loaded(module: types.ModuleType) -> Iterator[types.CodeType]:
    """Yield the code of a module's functions and of its classes' methods."""
    for value in list(vars(module).values()):
        if looking.attribute(value, "__module__") == module.__name__:
            parts = [*vars(value).values()] if isinstance(value, type) else [value]
            yield from (code for part in parts for code in live_codes(part, set()))


def read(name: str) -> tuple[ast.Module, str] | None:
    """Return the parsed tree and the text of a loaded module of the user's; None when there is none."""
    path = file_of(name)
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        return ast.parse(text), text
    except (OSError, SyntaxError, ValueError):
        return None
