"""Following experiments, and submitting them: `submitting` (or the cell) → `submission` → `check` → `send` → store.

Names that need the header and the capture are imported from their modules, so that following loads neither.
"""

from __future__ import annotations

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.experiment_changes import StopReceipt
from jupyter_autotrain.client.lookup import attach, default_home, experiment_names, experiments

__all__ = ["Experiment", "StopReceipt", "attach", "default_home", "experiment_names", "experiments"]
