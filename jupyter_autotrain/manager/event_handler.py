"""Handles what job watchers send: reports go to the store first, then every decision that rests on them.

A stream that was not read from its cursor on is read again; its other events are dropped until that reading begins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import CancelReceipt, JobRef, JobStatus, receipt_of
from jupyter_autotrain.core.federated import RoundNews
from jupyter_autotrain.core.spec import STANDARD, Placement
from jupyter_autotrain.manager.attempts import Attempt, Silence, nodes_of, refusal
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.experiment_run import ExperimentRun, isolated
from jupyter_autotrain.manager.federated.trainings import take_news
from jupyter_autotrain.manager.jobs.events import (
    Cancelled,
    Discovered,
    Event,
    JobEvent,
    JobUpdate,
    StatusUnknown,
    SubmitFailed,
    SubmitProgress,
    Submitted,
    Unreachable,
)
from jupyter_autotrain.manager.requests import RequestHandler
from jupyter_autotrain.manager.trial_end import finish
from jupyter_autotrain.store import Ingest

_CANCEL_AGAIN_S = 2.0  # sooner than a stop gives a node up that does not answer for a moment
_SUBMIT_AGAIN_S = 2.0
_MAY_RUN = "whether an earlier submission has started it on {} is not known: look there before it is tried again"
_log = logging.getLogger(__name__)


class EventHandler:
    """Applies events to the runs.

    Args:
        context: The home.
        runs: The unfinished experiments, by id.
        backend_pool: The backends that they use.
        requests: Requests that wait for receipts.
    """

    def __init__(
        self,
        context: ManagerContext,
        runs: Mapping[str, ExperimentRun],
        backend_pool: BackendPool,
        requests: RequestHandler,
    ) -> None:
        self._context = context
        self._runs = runs
        self._backend_pool = backend_pool
        self._requests = requests

    def handle(self, events: Sequence[Event]) -> None:
        """Store what trials reported, then follow each event."""
        for event in self._store_reports(list(filter(self._is_current, events))):
            if isinstance(event, Discovered):
                self._discovered(event)
            elif isinstance(event, RoundNews):
                if run := self._runs.get(event.experiment):
                    isolated(run, partial(take_news, run, event))
            elif isinstance(event, Unreachable):
                self._backend_pool.set_reachability(event)
            elif found := self._find(event.job_id):
                run, attempt = found
                isolated(run, partial(self._follow, run, attempt, event))

    def _is_current(self, event: Event) -> bool:
        """Return False for what was read before its stream had to be read again."""
        found = self._find(event.job_id) if isinstance(event, JobUpdate) else None
        return found is None or not isinstance(event, JobUpdate) or found[1].accepts(event.frames.start)

    def _store_reports(self, events: Sequence[Event]) -> list[Event]:
        """Store what trials reported; gives the events without those of streams that have to be read again."""
        rows = list(filter(None, map(self._ingest, events)))
        left_out = self._context.retry_store(self._context.store.ingest, rows) if rows else []
        again = {f"{row.experiment_id}-{row.number}-{row.attempt}" for row in left_out}
        refs: dict[str, JobRef] = {}
        others: list[Event] = []
        for event in events:
            if isinstance(event, JobUpdate) and event.job_id in again:
                refs[event.job_id] = event.status.ref
            else:
                others.append(event)
        for job_id, ref in refs.items():
            self._read_again(job_id, ref)
        return others

    def _ingest(self, event: Event) -> Ingest | None:
        """Return what an event brings for the store; None where it brings nothing new."""
        if not isinstance(event, JobUpdate) or not event.frames.is_news:
            return None
        found = self._find(event.job_id)
        return _ingest_of(*found, event) if found else None

    def _read_again(self, job_id: str, ref: JobRef) -> None:
        found = self._find(job_id)
        if found is None:
            return
        run, attempt = found
        trial = attempt.trial
        store = self._context.store
        offset = self._context.retry_store(store.cursor, run.id, trial.number, trial.attempt, wire.METRICS)
        _log.warning("%s: its metrics are read again from byte %d", job_id, offset)
        attempt.read_again_from = offset
        self._backend_pool.watcher(run.choice(attempt)).watch(trial, ref, offset)

    def _find(self, job_id: str) -> tuple[ExperimentRun, Attempt] | None:
        experiment_id, trial_number, attempt_number = job_id.rsplit("-", 2)
        run = self._runs.get(experiment_id)
        attempt = run.attempts.get(int(trial_number)) if run else None
        return (run, attempt) if run and attempt and attempt.trial.attempt == int(attempt_number) else None

    def _follow(
        self,
        run: ExperimentRun,
        attempt: Attempt,
        event: JobEvent,
    ) -> None:
        if isinstance(event, Submitted):
            attempt.ref = event.ref
            attempt.unreachable = None
            self._context.retry_store(
                partial(self._context.store.annotate, run.id, attempt.trial.number, ref=event.ref)
            )
        elif isinstance(event, SubmitFailed):
            self._submit_failed(run, attempt, event)
        elif isinstance(event, Cancelled):
            self._cancelled(run, attempt, event)
        elif isinstance(event, SubmitProgress):
            run.set_progress(attempt, event.what)
        elif isinstance(event, StatusUnknown):
            run.set_unknown(attempt, event.reason, Silence(event.reason, event.nodes) if event.unreachable else None)
        else:
            self._update(run, attempt, event)

    def _submit_failed(self, run: ExperimentRun, attempt: Attempt, event: SubmitFailed) -> None:
        """End what is refused everywhere; else the trial waits for another place, unless it may run there."""
        ref = JobRef(attempt.placement.backend, event.job_id)
        if event.kind == "impossible":
            self._fail(run, attempt, event.reason)
        elif event.kind == "refused":
            self._refused(run, attempt, event.reason)
        elif event.kind == "unknown" or attempt.may_run:
            attempt.may_run = True
            attempt.submitted = False
            attempt.submit_at_s = self._context.clocks.tick_s() + _SUBMIT_AGAIN_S
            attempt.unreachable = Silence(event.reason)
        elif attempt.final_state is not None:
            self._requests.note_receipt(run.id, attempt.trial.number, CancelReceipt(note="it had not begun"))
            self._finish(run, attempt, JobStatus(ref, TrialState.CANCELLED, event.reason))
        else:
            self._backend_pool.set_unavailable(attempt, run.choice(attempt), event.reason)
            self._wait_again(run, attempt, f"{attempt.placement.backend}: {event.reason}")

    def _refused(self, run: ExperimentRun, attempt: Attempt, reason: str) -> None:
        """Let a trial go where it is not refused yet; where there is no such place, it has failed."""
        number = attempt.trial.number
        is_settled = attempt.final_state is not None or attempt.may_run
        if is_settled or not self._is_possible_elsewhere(run, attempt):
            is_first = not run.history.refusals(number)
            run.history.refuse(number, attempt.placement, reason)
            self._fail(run, attempt, reason if is_first else "; ".join(run.history.refusals(number)))
        else:
            self._wait_again(run, attempt, refusal(attempt.placement, reason), attempt.placement)

    def _fail(self, run: ExperimentRun, attempt: Attempt, reason: str) -> None:
        """End a trial that is not started; whether the submission of a manager before has done so, nobody knows."""
        ref = JobRef(attempt.placement.backend, attempt.trial.job_id)
        doubt = f"; {_MAY_RUN.format(ref.backend)}" if attempt.may_run else ""
        self._finish(run, attempt, JobStatus(ref, TrialState.FAILED, f"{reason}{doubt}"))

    def _is_possible_elsewhere(self, run: ExperimentRun, attempt: Attempt) -> bool:
        """Return whether a node of one of the backends has not refused the trial yet, besides those that do so now."""
        for choice in run.record.spec.backends:
            name = choice.profile.name
            refused = set(run.history.refused_by(attempt.trial.number, name))
            if name == attempt.placement.backend:
                refused.update(nodes_of(attempt.placement))
            if "" not in refused and not self._backend_pool.nodes(choice) <= refused:
                return True
        return False

    def _wait_again(self, run: ExperimentRun, attempt: Attempt, reason: str, refused: Placement | None = None) -> None:
        """Take a trial back that its backend has not got, or refuses there."""
        self._backend_pool.release(attempt)
        del run.attempts[attempt.trial.number]
        run.change_state(attempt.trial.number, TrialState.WAITING, reason, placement=refused)

    def _update(self, run: ExperimentRun, attempt: Attempt, event: JobUpdate) -> None:
        if reason := run.reason_to_stop(attempt, event.frames):
            run.cancel(attempt, FinalState(TrialState.EARLY_STOPPED, reason))
        if event.frames.gpus_asked is not None and run.record.spec.mode == STANDARD:
            attempt.gpus_asked = event.frames.gpus_asked
        if not event.status.state.is_final:
            run.update(attempt, event.status)
        elif attempt.cancelling:
            attempt.pending_status = event.status
        else:
            self._finish(run, attempt, event.status)

    def _cancelled(self, run: ExperimentRun, attempt: Attempt, event: Cancelled) -> None:
        attempt.cancelling = False
        attempt.uncancelled = _silence(event)
        if event.receipt is None or attempt.uncancelled:
            reason = attempt.uncancelled.reason if attempt.uncancelled else event.reason
            _log.warning("%s was not cancelled, trying again: %s", event.job_id, reason)
            attempt.cancel_at_s = self._context.clocks.tick_s() + _CANCEL_AGAIN_S
        if event.receipt is not None:
            self._requests.note_receipt(run.id, attempt.trial.number, event.receipt)
        if attempt.pending_status is not None:
            self._finish(run, attempt, attempt.pending_status)

    def _finish(self, run: ExperimentRun, attempt: Attempt, status: JobStatus) -> None:
        self._backend_pool.release(attempt)
        if "receipt" in status.detail:
            self._requests.note_receipt(run.id, attempt.trial.number, receipt_of(status.detail))
        may_move = status.state is TrialState.LOST and self._backend_pool.has_other_place(run, attempt)
        finish(run, attempt, status, may_move=may_move)

    def _discovered(self, event: Discovered) -> None:
        self._backend_pool.discovered(event)
        if event.inventory is None:
            for run in list(self._runs.values()):
                self._backend_pool.fail_unusable(run)


def _silence(event: Cancelled) -> Silence | None:
    """Which nodes have not answered a cancel."""
    if event.receipt is None:
        return Silence(event.reason) if event.unreachable else None
    nodes = event.receipt.unreachable_nodes
    return Silence(f"{', '.join(nodes)} did not answer", nodes) if nodes else None


def _ingest_of(run: ExperimentRun, attempt: Attempt, event: JobUpdate) -> Ingest:
    trial = attempt.trial
    frames = event.frames
    return Ingest(
        trial.experiment_id,
        trial.number,
        trial.attempt,
        wire.METRICS,
        frames.cursor,
        frames.points,
        frames.notes,
        objective=run.record.spec.objective,
        cursor_before=frames.start,
    )
