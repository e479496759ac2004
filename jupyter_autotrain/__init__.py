"""Train from a notebook cell, anywhere.

In a notebook: `%load_ext jupyter_autotrain`, then `%%autotrain` on a cell. In a script: `submit`,
`experiments`, `attach`, `trial`. Importing this package loads nothing heavy; names are imported when used.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError("jupyter_autotrain needs Linux or macOS: on Windows install it, with Jupyter, inside WSL.")

from importlib import import_module

from jupyter_autotrain.agent import VERSION as _VERSION

TYPE_CHECKING = False  # every trial imports this package, so `typing` itself is left out
if TYPE_CHECKING:
    from typing import Any

    from IPython.core.interactiveshell import InteractiveShell

    from jupyter_autotrain.agent.ranks.data import DataPaths
    from jupyter_autotrain.client import Experiment, attach, experiments
    from jupyter_autotrain.client.calibrating import calibrate
    from jupyter_autotrain.client.submitting import submit, trial
    from jupyter_autotrain.core.cluster import ClusterSpec
    from jupyter_autotrain.core.measurement import Measurement
    from jupyter_autotrain.errors import AutotrainError
    from jupyter_autotrain.parallel.api import plan
    from jupyter_autotrain.parallel.calibrate.calibration import Machine
    from jupyter_autotrain.parallel.plan import Plan

__version__ = _VERSION
__all__ = [
    "AutotrainError",
    "DataPaths",
    "Experiment",
    "Plan",
    "attach",
    "calibrate",
    "experiments",
    "plan",
    "submit",
    "trial",
]

_HOMES = {
    "AutotrainError": "jupyter_autotrain.errors",
    "Experiment": "jupyter_autotrain.client",
    "Plan": "jupyter_autotrain.parallel.plan",
    "DataPaths": "jupyter_autotrain.agent.ranks.data",
    "attach": "jupyter_autotrain.client",
    "calibrate": "jupyter_autotrain.client.calibrating",
    "experiments": "jupyter_autotrain.client",
    "plan": "jupyter_autotrain.parallel.api",
    "submit": "jupyter_autotrain.client.submitting",
    "trial": "jupyter_autotrain.client.submitting",
    # Inside a trial, for modules beside the notebook, and for cells whose notebook binds these names itself.
    "checkpoint": "jupyter_autotrain.agent.ranks.api",
    "data": "jupyter_autotrain.agent.ranks.api",
    "display": "jupyter_autotrain.agent.ranks.api",
    "params": "jupyter_autotrain.agent.ranks.api",
    "rank": "jupyter_autotrain.agent.ranks.api",
    "report": "jupyter_autotrain.agent.ranks.api",
    "should_stop": "jupyter_autotrain.agent.ranks.api",
    "world_size": "jupyter_autotrain.agent.ranks.api",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names differ in type
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def show_value(value: object) -> object:
    """Show a value where the user is; for `core.table`, which may name no view."""
    return import_module("jupyter_autotrain.widgets").show(value)


def value_mime_bundle(value: object) -> dict[str, object]:
    """Return the static forms of a value, by MIME type; for `core.table`."""
    bundle: dict[str, object] = import_module("jupyter_autotrain.views.card").mime_bundle(value)
    return bundle


def plot_of(kind: str, *args: object, **options: object) -> object:
    """Return a plot of an experiment; for `core.table`."""
    module, _, function = kind.partition(":")
    return getattr(import_module(f"jupyter_autotrain.views.{module}"), function)(*args, **options)


def report_of(experiment: Experiment, **options: Any) -> str:  # noqa: ANN401 - those of `Experiment.report`
    """Return an experiment as one HTML document; for `core.table`."""
    text: str = import_module("jupyter_autotrain.views.report").html(experiment, **options)
    return text


def find_cluster(name: str) -> ClusterSpec | None:
    """Return the cluster of a backend by the backend's name; for `core.cluster.find_named`."""
    found: ClusterSpec | None = import_module("jupyter_autotrain.client.clusters").find(name)
    return found


def find_machine(name: str) -> Machine | None:
    """Return the calibrated machine that a cluster's text names; for `parallel.calibrate.calibration.find_machine`."""
    found: Machine | None = import_module("jupyter_autotrain.client.calibrating").find(name)
    return found


def find_measurements(devices: frozenset[str]) -> list[Measurement]:
    """Return the measurements of plans on some kinds of devices; for `core.measurement.find_measurements`."""
    found: list[Measurement] = import_module("jupyter_autotrain.client.calibrating").measured_on(devices)
    return found


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
