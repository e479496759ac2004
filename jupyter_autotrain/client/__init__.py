"""Submitting and following experiments from Python: `submit` or `cell` → `check` → `send` → store and manager."""

from __future__ import annotations

from jupyter_autotrain.client.check import check, preview
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.receipt import Receipt
from jupyter_autotrain.client.send import send
from jupyter_autotrain.client.submitting import attach, experiments, submit, trial

__all__ = ["Experiment", "Receipt", "attach", "check", "experiments", "preview", "send", "submit", "trial"]
