"""The search of an experiment: new trials with the parameters that its tuner gives."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.backends.trial_content import saved_attempt
from jupyter_autotrain.core.objective import Constraint, Objective, Summary
from jupyter_autotrain.core.space import allows
from jupyter_autotrain.core.spec import ExperimentSpec, TrialSource
from jupyter_autotrain.core.text_format import count, cut
from jupyter_autotrain.core.tuner import GenerationTuner, Observation, Tuner
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager.experiment_run import ExperimentRun

_log = logging.getLogger(__name__)


def create_trials(run: ExperimentRun) -> None:
    """Fill the free slots with new trials, until there are as many as the spec asks for."""
    if run.objective_check.reason and not run.attempts:
        _end_blocked(run)
    while _may_create(run) and _create_trial(run):
        continue
    if not run.closed and len(run.trials) >= run.record.spec.trials:
        run.close()


def _may_create(run: ExperimentRun) -> bool:
    has_slot = len(run.active) < run.concurrency
    has_trials_left = len(run.trials) < run.record.spec.trials
    return has_slot and has_trials_left and not run.closed and not run.objective_check.reason


def _create_trial(run: ExperimentRun) -> bool:
    """Create one trial, or close the experiment when the tuner has none, or fails; False where the tuner waits."""
    number = max(run.trials, default=0) + 1
    try:
        if not _is_ready(run, number):
            return False
        params = _ask(run, number)
        source = _source(run, number)
    except Exception as error:  # noqa: BLE001 - a bad tuner fails its trial, not the manager
        _log.exception("%s: the tuner failed", run.label)
        what = str(error) if isinstance(error, AutotrainError) else f"{type(error).__name__}: {error}"
        reason = f"the tuner {run.record.spec.tuner!r} failed: {what}"
        run.add_trial(number, {})
        run.change_state(number, TrialState.FAILED, reason)
        run.close(reason)
        return True
    if params is None:
        run.close(f"the search space is used up after {count(len(run.trials), 'trial')}")
    else:
        run.add_trial(number, params, source or run.record.spec.start_from)
    return True


def _is_ready(run: ExperimentRun, number: int) -> bool:
    """Tell whether the tuner can be asked; only one of generations waits for trials."""
    if not run.record.spec.search:
        return True
    tuner = _told_tuner(run)
    return not isinstance(tuner, GenerationTuner) or tuner.is_ready(number - len(run.clones))


def _source(run: ExperimentRun, number: int) -> TrialSource | None:
    """Return the trial that a new one goes on from, by its tuner."""
    asked = number - len(run.clones)
    found = run.tuner.source(asked) if isinstance(run.tuner, GenerationTuner) else None
    if found is None:
        return None
    for clone in run.clones:
        found += clone <= found
    trial = run.trials[found]
    attempt = saved_attempt(run.context.home, trial) or trial.attempt
    return TrialSource(run.id, found, attempt, f"trial {found}")


def _ask(run: ExperimentRun, number: int) -> Mapping[str, JsonValue] | None:
    spec = run.record.spec
    if spec.federated is not None:
        clients = spec.federated.clients
        return {"client": clients[number - 1].name} if number <= len(clients) else None
    if not spec.search:
        return {}
    params = run.context.retry_transient(_told_tuner(run).ask, number - len(run.clones))
    if params is not None:
        _check(spec, params)
    return params


def _told_tuner(run: ExperimentRun) -> Tuner:
    """Return the tuner, told what has changed in order of the trials' numbers.

    It knows its own trials only, numbered as if there were no clones: a search gives the same with clones and without.
    """
    if run.tuner is None:
        run.tuner = run.context.retry_transient(run.context.factories.create_tuner, run.record.spec)
        run.untold = set(run.trials)
    for number in sorted(run.untold):
        if number not in run.clones:
            run.tuner.tell(replace(_observation(run, number), number=number - bisect_left(run.clones, number)))
        run.untold.discard(number)
    return run.tuner


def _observation(run: ExperimentRun, number: int) -> Observation:
    trial = run.trials[number]
    spec = run.record.spec
    if not trial.state.is_final or not (spec.more_objectives or spec.constraints):
        return Observation(number, trial.params, trial.state, trial.value)
    values = tuple(_value(run, number, one) for one in spec.more_objectives)
    return Observation(number, trial.params, trial.state, trial.value, values, _violations(run, number))


def _violations(run: ExperimentRun, number: int) -> dict[str, float]:
    found = {}
    for constraint in run.record.spec.constraints:
        value = _value(run, number, _last_of(constraint))
        if value is not None:
            found[str(constraint)] = constraint.violation(value)
    return found


def _last_of(constraint: Constraint) -> Objective:
    return Objective(constraint.metric, summary=Summary.LAST)


def _value(run: ExperimentRun, number: int, objective: Objective) -> float | None:
    """Return a trial's value of an objective, from what the store has of it."""
    store = run.context.store
    columns = run.context.retry_store(store.series, run.id, objective.metric, number).get(number)
    return None if columns is None else objective.value(columns[1])


def _check(spec: ExperimentSpec, params: Mapping[str, JsonValue]) -> None:
    """Check what a tuner gives.

    Raises:
        ValueError: It is no point of the search space.
    """
    if not isinstance(params, Mapping):
        raise ValueError(f"it gave {cut(repr(params), 80)} instead of a mapping of parameters")  # noqa: TRY004
    json.dumps(params, allow_nan=False)
    if spec.tuner == "batch":
        return
    for name in {**spec.search, **params}:
        if name not in params:
            raise ValueError(f"it gave no value of {name!r}")
        if name not in spec.search:
            raise ValueError(f"it gave {name!r}, which is not in the search space")
        if not allows(spec.search[name], params[name]):
            raise ValueError(f"it gave {name} = {cut(repr(params[name]), 80)}, which the search space does not have")


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
