"""What is put in place when a cell, or a module of its, imports matplotlib or IPython."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_BACKEND = "module://jupyter_autotrain.worker.matplotlib_backend"


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
