"""Setting the random generators of libraries the moment they are imported, without importing any."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_Action = Callable[[ModuleType], object]
_SEEDERS: Mapping[str, Callable[[ModuleType, int], object]] = {
    "numpy.random": lambda module, seed: module.seed(seed % 2**32),
    "torch": lambda module, seed: module.manual_seed(seed),
    "tensorflow": lambda module, seed: module.random.set_seed(seed),
}


class _ActingLoader(Loader):
    """Loads a module as its own loader does, then acts on it."""

    def __init__(self, loader: Loader, action: _Action) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self._loader  # leave no trace: some look at their loader
        self._action(module)


class _ActingFinder(MetaPathFinder):
    """Wraps the loaders of the modules that wait for an action."""

    def __init__(self, actions: Mapping[str, _Action]) -> None:
        self._waiting = dict(actions)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._waiting:
            return None
        action = self._waiting.pop(name)
        if not self._waiting:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None and spec.loader is not None:
                spec.loader = _ActingLoader(spec.loader, action)
                return spec
        return None


def at_import(actions: Mapping[str, _Action]) -> None:
    """Act on modules: now on those that are imported, on the others when they are.

    Args:
        actions: What to do, by the name of the module.
    """
    waiting = {name: action for name, action in actions.items() if name not in sys.modules}
    if waiting:
        sys.meta_path.insert(0, _ActingFinder(waiting))
    for name in actions.keys() - waiting.keys():
        actions[name](sys.modules[name])


def seed_everything(seed: int) -> None:
    """Seed `random` now, and numpy, torch and tensorflow when they are imported (or now, when they already are)."""
    random.seed(seed)
    at_import({name: _seeding(name, seed) for name in _SEEDERS})


def seed_loaded(seed: int) -> None:
    """Seed `random`, and those of numpy, torch and tensorflow that are imported."""
    random.seed(seed)
    for name in _SEEDERS.keys() & sys.modules.keys():
        _SEEDERS[name](sys.modules[name], seed)


def _seeding(name: str, seed: int) -> _Action:
    return lambda module: _SEEDERS[name](module, seed)
