"""A fault in the handling of one experiment ends that experiment, not the manager."""

from __future__ import annotations

import logging
from collections.abc import Callable

from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.manager.experiment_run import ExperimentRun

_log = logging.getLogger(__name__)


def isolated(run: ExperimentRun, step: Callable[[], None]) -> None:
    """Make a step in the handling of an experiment; when it raises, the experiment ends with that reason."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the log has it whole
        _log.exception("%s: a fault", run.label)
        if not run.stopping:
            reason = f"a fault in the manager: {type(error).__name__}: {error}"
            run.cancel_all(FinalState(TrialState.FAILED, reason))
