"""Train from a notebook cell, anywhere.

In a notebook: `%load_ext jupyter_autotrain`, then `%%autotrain` on a cell. In a script: `submit`,
`experiments`, `attach`, `trial`. Importing this package loads nothing heavy; names are imported when used.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("jupyter_autotrain needs Linux or macOS: on Windows install it, with Jupyter, inside WSL.")

from importlib import import_module

from jupyter_autotrain.core import display as _display
from jupyter_autotrain.core import named_clusters as _named_clusters
from jupyter_autotrain.core.version import VERSION as _VERSION

TYPE_CHECKING = False  # every trial imports this package, so `typing` itself is left out
if TYPE_CHECKING:
    from typing import Any

    from IPython.core.interactiveshell import InteractiveShell

    from jupyter_autotrain.client import Experiment, attach, experiments
    from jupyter_autotrain.client.submitting import submit, trial
    from jupyter_autotrain.core.cluster import ClusterSpec
    from jupyter_autotrain.errors import AutotrainError
    from jupyter_autotrain.parallel.api import plan
    from jupyter_autotrain.parallel.plan import Plan
    from jupyter_autotrain.worker.data_paths import DataPaths

__version__ = _VERSION
__all__ = ["AutotrainError", "DataPaths", "Experiment", "Plan", "attach", "experiments", "plan", "submit", "trial"]

_HOMES = {
    "AutotrainError": "jupyter_autotrain.errors",
    "Experiment": "jupyter_autotrain.client",
    "Plan": "jupyter_autotrain.parallel.plan",
    "DataPaths": "jupyter_autotrain.worker.data_paths",
    "attach": "jupyter_autotrain.client",
    "experiments": "jupyter_autotrain.client",
    "plan": "jupyter_autotrain.parallel.api",
    "submit": "jupyter_autotrain.client.submitting",
    "trial": "jupyter_autotrain.client.submitting",
    # Inside a trial, for modules beside the notebook, and for cells whose notebook binds these names itself.
    "checkpoint": "jupyter_autotrain.worker.api",
    "data": "jupyter_autotrain.worker.api",
    "display": "jupyter_autotrain.worker.api",
    "params": "jupyter_autotrain.worker.api",
    "rank": "jupyter_autotrain.worker.api",
    "report": "jupyter_autotrain.worker.api",
    "should_stop": "jupyter_autotrain.worker.api",
    "world_size": "jupyter_autotrain.worker.api",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names differ in type
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _show(value: object) -> object:
    return import_module("jupyter_autotrain.widgets").show(value)


def _mime_bundle(value: object) -> dict[str, object]:
    bundle: dict[str, object] = import_module("jupyter_autotrain.views.card").mime_bundle(value)
    return bundle


def _find_cluster(name: str) -> ClusterSpec | None:
    found: ClusterSpec | None = import_module("jupyter_autotrain.client.clusters").find(name)
    return found


# This module runs before every other one of the package, so the hooks are there before any value; views load on use.
_display.hooks.show = _show
_display.hooks.mime_bundle = _mime_bundle
_named_clusters.hooks.find = _find_cluster


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-autotrain"}]


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "jupyter_autotrain.server"}]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register `%%autotrain`, `%autotrain` and the header's completion."""
    import_module("jupyter_autotrain.cell").load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Undo `load_ipython_extension`."""
    import_module("jupyter_autotrain.cell").unload(shell)
