"""Creates the trials of an experiment: asks the tuner for parameters, as long as there are free slots."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.manager.experiment_run import ExperimentRun

_log = logging.getLogger(__name__)


def create_trials(run: ExperimentRun) -> None:
    """Fill the free slots with new trials, until there are as many as the spec asks for."""
    if run.objective_check.reason and not run.attempts:
        _end_blocked(run)
    while _may_create(run):
        _create_trial(run)
    if not run.closed and len(run.trials) >= run.record.spec.trials:
        run.close()


def _may_create(run: ExperimentRun) -> bool:
    has_slot = len(run.active) < run.concurrency
    has_trials_left = len(run.trials) < run.record.spec.trials
    return has_slot and has_trials_left and not run.closed and not run.objective_check.reason


def _create_trial(run: ExperimentRun) -> None:
    """Create one trial; or close the experiment when the tuner has none, or fails."""
    number = max(run.trials, default=0) + 1
    try:
        params = _suggest(run, number)
    except Exception as error:  # noqa: BLE001 - a bad tuner fails its trial, not the manager
        _log.exception("%s: the tuner failed", run.label)
        reason = f"the tuner {run.record.spec.tuner!r} failed: {type(error).__name__}: {error}"
        run.add_trial(number, {})
        run.change_state(number, TrialState.FAILED, reason)
        run.close(reason)
        return
    if params is None:
        run.close(f"the search space is used up after {len(run.trials)} trials")
    else:
        run.add_trial(number, params)


def _suggest(run: ExperimentRun, number: int) -> Mapping[str, JsonValue] | None:
    spec = run.record.spec
    context = run.context
    if not spec.search:
        return {}
    if run.tuner is None:
        run.tuner = context.retry_transient(context.factories.create_tuner, spec)
    history = [Observation(t.number, t.params, t.state, t.value) for t in run.trials.values()]
    return context.retry_transient(run.tuner.suggest, number, history)


def _end_blocked(run: ExperimentRun) -> None:
    """No trial that could report the objective runs any more: what is blocked never begins."""
    waiting = run.waiting()
    not_created = 0 if run.closed else run.record.spec.trials - len(run.trials)
    left = len(waiting) + not_created
    reason = run.objective_check.closing_reason(left)
    run.objective_check.reason = ""
    if left:
        run.close(reason)
    run.cancel_trials(waiting, FinalState(TrialState.CANCELLED, reason))
    run.store_decision("objective", "")
