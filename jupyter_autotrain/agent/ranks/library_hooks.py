"""Actions the moment a library is imported, without importing any: random generators are seeded, pictures are kept."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_Action = Callable[[ModuleType], object]
_SEEDERS: Mapping[str, Callable[[ModuleType, int], object]] = {
    "numpy.random": lambda module, seed: module.seed(seed % 2**32),
    "torch": lambda module, seed: module.manual_seed(seed),
    "tensorflow": lambda module, seed: module.random.set_seed(seed),
}
_BACKEND = "module://jupyter_autotrain.agent.ranks.matplotlib_backend"


class _ActingLoader(Loader):
    """A loader that loads a module as the module's own loader does, then acts on it."""

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
    """A finder that wraps the loaders of the modules that wait for an action."""

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


def draw_anew() -> None:
    """Have the generators that begin by chance begin anew, as in a process that has just imported them.

    That of `random` does so by itself in each forked process, those of GPUs when one is used.
    """
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)


def patched_spec(name: str, path: Sequence[str] | None, display: Callable[..., object]) -> ModuleSpec | None:
    """Prepare one of the modules that `trial.DisplayFinder` looks out for; None leaves the rest to other finders.

    Args:
        name: The module that is about to be imported.
        path: Where it is looked for.
        display: What `IPython.display.display` becomes.
    """
    if name == "matplotlib.pyplot":
        _choose_backend()
        return None
    spec = PathFinder.find_spec(name, path)
    loader = spec.loader if spec else None
    if loader is not None:
        execute = loader.exec_module

        def then_ours(module: ModuleType) -> None:
            execute(module)
            module.display = display  # type: ignore[attr-defined]  # the module has it

        loader.exec_module = then_ours  # type: ignore[method-assign]  # of this one module's loader
    return spec


def _choose_backend() -> None:
    """Have `plt.show()` keep figures, unless the user has chosen a backend that writes something else."""
    settings = getattr(sys.modules.get("matplotlib"), "rcParams", None)
    if settings is None:
        return
    chosen = dict.__getitem__(settings, "backend")  # read without having matplotlib look for one
    if not isinstance(chosen, str) or chosen.lower() == "agg":
        settings["backend"] = _BACKEND
