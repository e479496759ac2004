"""What is put in place when a cell, or a module of its, imports matplotlib or IPython: nothing is loaded before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

TYPE_CHECKING = False  # every trial imports this module
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_BACKEND = "module://jupyter_autotrain.worker.figures"
_DISPLAY_MODULE = "IPython.core.display_functions"


class DisplayFinder:
    """Sees imports before they happen.

    Args:
        display: What `IPython.display.display` becomes.
    """

    def __init__(self, display: Callable[..., object]) -> None:
        self._display = display

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by Python for each import; None leaves it to the other finders."""
        if name == "matplotlib.pyplot":
            _choose_backend()
        elif name == _DISPLAY_MODULE:
            from importlib.machinery import PathFinder  # noqa: PLC0415 - only trials that import IPython pay

            return self._with_our_display(PathFinder.find_spec(name, path, target))
        return None

    def _with_our_display(self, spec: ModuleSpec | None) -> ModuleSpec | None:
        loader = spec.loader if spec else None
        if loader is None:
            return spec
        execute = loader.exec_module

        def then_ours(module: ModuleType) -> None:
            execute(module)
            module.display = self._display  # type: ignore[attr-defined]  # the module has it

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
