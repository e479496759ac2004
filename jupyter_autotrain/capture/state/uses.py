"""Which libraries a trial uses: those that its code names, and those that these load."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from jupyter_autotrain.capture import modules
from jupyter_autotrain.capture.state import own_modules
from jupyter_autotrain.capture.state.paths import top


class Uses:
    """The packages that a trial uses; the standard library always counts as used.

    Args:
        direct: The packages that its code imports, or that its data needs.
    """

    def __init__(self, direct: Collection[str]) -> None:
        self.direct = frozenset(direct)

    def __contains__(self, path: str) -> bool:
        """Whether a trial uses the package that a full name begins with."""
        package = top(path)
        return package in sys.stdlib_module_names or self.reaches(package)

    def reaches(self, package: str) -> bool:
        """Whether it uses a package itself or by what it loads; one of the standard library too."""
        return package in self.direct or self._is_open or package in self._reached

    def loads(self, package: str) -> bool:
        """Whether it is known to use a package."""
        return package in self.direct or package in self._reached

    @cached_property
    def _is_open(self) -> bool:
        """True when the trial is the first to load one of them: nobody can say yet what it loads in turn."""
        return any(name not in sys.modules and name not in sys.stdlib_module_names for name in self.direct)

    @cached_property
    def _reached(self) -> set[str]:
        """The packages that are loaded by those used; looked up only when something else was changed."""
        members: dict[str, list[types.ModuleType]] = {}
        for name, module in list(sys.modules.items()):
            if isinstance(module, types.ModuleType):  # anything may be put there
                members.setdefault(top(name), []).append(module)
        reached, todo = set(self.direct), sorted(self.direct)
        while todo:
            fresh = {package for module in members.get(todo.pop(), ()) for package in _packages_in(module)} - reached
            reached |= fresh
            todo += sorted(fresh & set(members) - sys.stdlib_module_names)
        return reached


def of(trees: Iterable[ast.Module], pickled: Iterable[Collection[str]]) -> Uses:
    """The packages that some code and the pickled values need."""
    names = {name for tree in trees for name in modules.imported(tree)}.union(*pickled)
    return Uses({top(name) for name in names})


def _packages_in(module: types.ModuleType) -> Iterator[str]:
    """The packages whose modules it holds; a module of the user's own may also import only parts of one."""
    # No isinstance: that asks some values for their class, and there are very many.
    yield from (top(value.__name__) for value in list(vars(module).values()) if type(value) is types.ModuleType)
    if (read := own_modules.read(module.__name__)) is not None:
        yield from map(top, modules.imported(read[0]))
