"""Seeding every random generator a cell uses, the moment it is imported, without importing any."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_SEEDERS: dict[str, Callable[[ModuleType, int], object]] = {
    "numpy.random": lambda module, seed: module.seed(seed % 2**32),
    "torch": lambda module, seed: module.manual_seed(seed),
    "tensorflow": lambda module, seed: module.random.set_seed(seed),
}


class _SeedingLoader(Loader):
    """Loads a module as its own loader does, then seeds it."""

    def __init__(self, loader: Loader, seed: int) -> None:
        self._loader = loader
        self._seed = seed

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self._loader  # leave no trace: some look at their loader
        _SEEDERS[module.__name__](module, self._seed)


class _SeedingFinder(MetaPathFinder):
    """Wraps the loaders of the libraries that have a global generator."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._waiting = set(_SEEDERS)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._waiting:
            return None
        self._waiting.discard(name)
        if not self._waiting:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None and spec.loader is not None:
                spec.loader = _SeedingLoader(spec.loader, self._seed)
                return spec
        return None


def seed_everything(seed: int) -> None:
    """Seed `random` now, and numpy, torch and tensorflow when they are imported (or now, when they already are)."""
    random.seed(seed)
    sys.meta_path.insert(0, _SeedingFinder(seed))
    for name in _SEEDERS.keys() & sys.modules.keys():
        _SEEDERS[name](sys.modules[name], seed)
