"""Which libraries a trial uses: those that its code names, and those that these load."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.state import own_modules
from jupyter_autotrain.capture.state.paths import top


class UsedLibraries:
    """The packages that a trial uses; the standard library always counts as used.

    Args:
        direct: The packages that its code imports, or that its data needs.
    """

    def __init__(self, direct: Collection[str]) -> None:
        self.own = own_modules.loaded()
        self.direct = _with_own(direct, self.own)
        self._reached = set(self.direct)
        self._todo = sorted(self.direct)

    def __contains__(self, path: str) -> bool:
        """Whether a trial uses the package that a full name begins with."""
        package = top(path)
        return package in sys.stdlib_module_names or self.reaches(package)

    def reaches(self, package: str) -> bool:
        """Whether it uses a package itself or by what it loads; one of the standard library too."""
        return self.loads(package) or self._is_open

    def loads(self, package: str) -> bool:
        """Whether it is known to use a package; looks at no more loaded modules than it must."""
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
    """The packages that some code and the pickled values need."""
    names = {name for tree in trees for name in modules.imported(tree)}.union(*pickled)
    return UsedLibraries({top(name) for name in names} - {"jupyter_autotrain"})


def _with_own(direct: Collection[str], own: Collection[str]) -> frozenset[str]:
    """These packages, and those that the modules beside the notebook among them import."""
    known = set(direct)
    todo = set(direct)
    while todo:
        package = todo.pop()
        for name in own:
            read = own_modules.read(name) if top(name) == package else None
            fresh = {top(inner) for inner in modules.imported(read[0])} - known if read else set[str]()
            known |= fresh
            todo |= fresh
    return frozenset(known)


def _packages_in(module: types.ModuleType) -> Iterator[str]:
    """The packages whose modules it holds."""
    # No isinstance: it reads `__class__` of the values, which some compute, and there are very many.
    return (top(value.__name__) for value in list(vars(module).values()) if type(value) is types.ModuleType)
