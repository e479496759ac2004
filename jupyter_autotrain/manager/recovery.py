"""Taking up an experiment from the store alone: a new one, or one that a killed manager left at any instant.

A trial in PREPARING or RUNNING whose job is known is watched on from its byte cursor. One in PREPARING whose job is
not known may or may not have been submitted; it is submitted again, which starts the same job at most once.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.manager import reasons
from jupyter_autotrain.manager.attempts import Attempt, AttemptHistory, Silence
from jupyter_autotrain.manager.context import ManagerContext, PublishedReasons
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.objectives import EarlyStopping
from jupyter_autotrain.manager.trial_end import retry_or_count, try_again
from jupyter_autotrain.store.decisions import Attempts

_log = logging.getLogger(__name__)


def recover_run(context: ManagerContext, record: ExperimentRecord, *, again: bool = False) -> ExperimentRun:
    """Rebuild an experiment.

    Args:
        context: The home.
        record: The experiment as the store has it.
        again: True for a retry the user asked for: its budget of time is not held against it.
    """
    trials = {trial.number: trial for trial in context.retry_store(context.store.trials, record.id)}
    record = _on_this_boot(context, record)
    run = ExperimentRun(
        context,
        record,
        trials,
        closed=record.closed,
        stopping=record.stop_requested,
        deadline_s=None,
        history=AttemptHistory.of(context.retry_store(context.store.state_changes, record.id)),
        published=PublishedReasons.stored(context, record.id),
    )
    run.active = {number for number, trial in trials.items() if not trial.state.is_final}
    run.clones = [number for number, trial in trials.items() if trial.source is not None and trial.source.request]
    run.objective_check.is_reported = any(trial.value is not None for trial in trials.values())
    run.failures = sum(trial.state is TrialState.FAILED for trial in trials.values())
    run.early_stopping = _early_stopping(context, record)
    _resume_attempts(context, run)
    if not again:
        run.set_deadline()
        _resume_decisions(context, run)
        _resume_retries(run)
        run.enforce_budget()
    return run


def _resume_attempts(context: ManagerContext, run: ExperimentRun) -> None:
    """Take over the attempts that a backend has, and how they shall end."""
    ends = context.retry_store(context.store.end_decisions, run.id)
    for number in sorted(run.active):
        if run.trials[number].state is not TrialState.WAITING:
            run.attempts[number] = _attempt(run, number, ends)


def _resume_decisions(context: ManagerContext, run: ExperimentRun) -> None:
    """Take over what the manager before has decided on the experiment."""
    store = context.store
    if not run.objective_check.is_reported:
        run.objective_check.reason = context.retry_store(store.decision, run.id, "objective")
    run.closing_reason = context.retry_store(store.decision, run.id, "closing")
    run.closed = run.closed or bool(run.closing_reason)


def _on_this_boot(context: ManagerContext, record: ExperimentRecord) -> ExperimentRecord:
    """Go on counting durations after a restart of the machine; how long that took, only the wall clock can say."""
    now = context.clocks.boot()
    if now.since(record.begun) is not None:
        return record
    passed_s = max(0.0, context.clocks.now_s() - record.created_s)
    begun = replace(now, at_s=now.at_s - passed_s)
    context.retry_store(context.store.begin_experiment, record.id, begun)
    return replace(record, begun=begun)


def _attempt(run: ExperimentRun, number: int, ends: Attempts) -> Attempt:
    trial = run.trials[number]
    attempt = Attempt(
        run.trial_spec(number),
        trial.placement,
        ref=trial.ref,
        may_run=trial.ref is None,
    )
    published = {node.name for node in run.published.nodes}
    if silent := tuple(name for name in reasons.node_names(attempt) if name in published):
        attempt.unreachable = Silence("it does not answer", silent)
    if end := ends.get((number, trial.attempt)):
        run.schedule_cancel(attempt, end)
    return attempt


def _resume_retries(run: ExperimentRun) -> None:
    """Begin the attempts that were due when the manager was killed between an end and the next attempt."""
    for number, trial in run.trials.items():
        has_moved = run.history.has_moved(number)
        is_due = try_again(run.record.spec, trial, has_moved=has_moved)
        if is_due and trial.ref is not None:
            run.failures -= trial.state is TrialState.FAILED
            retry_or_count(run, number)


def _early_stopping(context: ManagerContext, record: ExperimentRecord) -> EarlyStopping | None:
    spec = record.spec
    if spec.early_stop == "none" or spec.objective is None:
        return None
    rule = context.factories.create_early_stop(spec)
    if rule is None:
        return None
    stopping = EarlyStopping(rule, spec.objective)
    context.retry_store(stopping.remember, context.store, record.id)
    return stopping
