"""The decisions: one turn takes in what happened, then does all that can be done now.

Order within a turn: what trials reported is in the store before any decision that rests on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import JobRef, JobStatus, receipt_of
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import FinalState, TrialState
from jupyter_autotrain.manager.attempt import Attempt
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.event_queue import EventQueue
from jupyter_autotrain.manager.events import (
    Cancelled,
    Discovered,
    Event,
    JobEvent,
    JobUpdate,
    StatusUnknown,
    SubmitFailed,
    Submitted,
    Unreachable,
)
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.job_watcher import JobWatcher
from jupyter_autotrain.manager.recovery import recover_run
from jupyter_autotrain.manager.requests import RequestHandler
from jupyter_autotrain.store import Ingest

_CANCEL_AGAIN_S = 5.0
_log = logging.getLogger(__name__)


class Manager:
    """All experiments of a home.

    Attributes:
        runs: The unfinished experiments, by id, oldest first.
    """

    def __init__(
        self, context: ManagerContext, event_queue: EventQueue, executor: Executor, *, start_watchers: bool = True
    ) -> None:
        self.runs: dict[str, ExperimentRun] = {}
        self._context = context
        self._event_queue = event_queue
        self._backend_pool = BackendPool(context, event_queue.emit, executor, start_watchers=start_watchers)
        self._requests = RequestHandler(context, self)
        self._secrets: dict[str, dict[str, str]] = {}

    @property
    def is_idle(self) -> bool:
        """True when there is nothing to do and nothing to wait for."""
        return not self.runs and not self._requests.is_busy

    def turn(self, messages: Sequence[JsonObject], *, look: bool) -> None:
        """Do everything that can be done now.

        Args:
            messages: What clients sent to the socket.
            look: True to look in the store for new experiments and requests.
        """
        for message in messages:
            self._learn(message)
        self._take_in(self._event_queue.drain())
        if look:
            self._look_in_store()
        for run in list(self.runs.values()):
            self._guarded(run, partial(self._advance, run))
        self._backend_pool.begin_round()
        for run in list(self.runs.values()):
            self._guarded(run, partial(self._start_trials, run))
        for run in list(self.runs.values()):
            self._publish(run)
            if run.is_over:
                self._drop(run)
        self._requests.settle()

    def adopt(self, run: ExperimentRun) -> None:
        """Take an experiment up: watch what runs, hold what it holds."""
        self.runs[run.id] = run
        self._backend_pool.open(run)

    def _publish(self, run: ExperimentRun) -> None:
        """Write down what keeps each trial, when that has changed."""
        reasons = dict(run.blocked)
        if silence := self._backend_pool.silence(run.record.spec.backend):
            reasons |= dict.fromkeys(run.attempts, f"is with a place that does not answer: {silence}")
        if reasons != run.published:
            run.published = reasons
            self._context.retry_store(self._context.store.set_block_reasons, run.id, reasons)

    def _drop(self, run: ExperimentRun) -> None:
        run.keep_end()
        del self.runs[run.id]
        self._secrets.pop(run.id, None)
        _log.info("%s (%s) is over", run.label, run.id)

    def _learn(self, message: JsonObject) -> None:
        secrets = message.get("secrets")
        for experiment_id, values in secrets.items() if isinstance(secrets, Mapping) else ():
            if isinstance(values, Mapping):
                known = self._secrets.setdefault(experiment_id, {})
                known.update({name: str(value) for name, value in values.items()})

    def _look_in_store(self) -> None:
        store = self._context.store
        retry_store = self._context.retry_store
        for record in retry_store(store.unfinished):
            if record.id not in self.runs:
                _log.info("%s@%d (%s) taken up", record.name, record.version, record.id)
                try:
                    run = self._context.retry_transient(recover_run, self._context, record)
                except Exception as error:  # noqa: BLE001 - one bad experiment must not stop the manager
                    _log.exception("%s cannot be taken up", record.id)
                    reason = f"it cannot be taken up: {error}"
                    retry_store(store.close_experiment, record.id, self._context.clocks.now_s(), reason)
                    continue
                self.adopt(run)
                if record.stop_requested:
                    run.end_all(FinalState(TrialState.CANCELLED, "stopped on request"))
        self._requests.take_in(retry_store(store.pending_requests))

    def _guarded(self, run: ExperimentRun, step: Callable[[], None]) -> None:
        """A fault in one experiment's handling ends that experiment, not the manager."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the log has it whole
            _log.exception("%s: a fault", run.label)
            if run.stopping:
                return
            run.end_all(FinalState(TrialState.FAILED, f"a fault in the manager: {type(error).__name__}: {error}"))

    def _take_in(self, events: Sequence[Event]) -> None:
        for event in self._store_reports([event for event in events if self._is_current(event)]):
            if isinstance(event, Discovered):
                self._discovered(event)
            elif isinstance(event, Unreachable):
                self._backend_pool.keep_silence(event)
            elif found := self._find(event.job_id):
                run, attempt = found
                self._guarded(run, partial(self._follow, run, attempt, event))

    def _is_current(self, event: Event) -> bool:
        """False for what was read before its stream had to be read again."""
        found = self._find(event.job_id) if isinstance(event, JobUpdate) else None
        return found is None or not isinstance(event, JobUpdate) or found[1].accepts(event.frames.start)

    def _store_reports(self, events: Sequence[Event]) -> list[Event]:
        """Store what trials reported; gives the events without those of streams that have to be read again."""
        seen = [event for event in events if isinstance(event, JobUpdate)]
        rows = []
        for event in seen:
            found = self._find(event.job_id)
            if found and event.frames.is_news:
                rows.append(_ingest(*found, event))
        left_out = self._context.retry_store(self._context.store.ingest, rows) if rows else []
        again = {f"{row.experiment_id}-{row.number}-{row.attempt}" for row in left_out}
        for job_id, ref in {event.job_id: event.status.ref for event in seen if event.job_id in again}.items():
            self._read_again(job_id, ref)
        return [event for event in events if not (isinstance(event, JobUpdate) and event.job_id in again)]

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
        self._watcher(run).watch(trial, ref, offset)

    def _find(self, job_id: str) -> tuple[ExperimentRun, Attempt] | None:
        experiment_id, trial_number, attempt_number = job_id.rsplit("-", 2)
        run = self.runs.get(experiment_id)
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
            self._context.retry_store(
                partial(self._context.store.annotate, run.id, attempt.trial.number, ref=event.ref)
            )
        elif isinstance(event, SubmitFailed):
            ref = JobRef(run.record.spec.backend, event.job_id)
            self._finish(run, attempt, JobStatus(ref, TrialState.FAILED, event.reason))
        elif isinstance(event, Cancelled):
            self._cancelled(run, attempt, event)
        elif isinstance(event, StatusUnknown):
            run.doubt(attempt, event.reason)
        else:
            self._seen(run, attempt, event)

    def _seen(self, run: ExperimentRun, attempt: Attempt, event: JobUpdate) -> None:
        if reason := run.take(attempt, event.frames):
            run.end(attempt, FinalState(TrialState.EARLY_STOPPED, reason))
        if not event.status.state.is_final:
            run.seen(attempt, event.status)
        elif attempt.cancelling:
            attempt.last = event.status
        else:
            self._finish(run, attempt, event.status)

    def _cancelled(self, run: ExperimentRun, attempt: Attempt, event: Cancelled) -> None:
        attempt.cancelling = False
        if event.receipt is None:
            _log.warning("%s was not cancelled, trying again: %s", event.job_id, event.reason)
            attempt.cancel_at_s = self._context.clocks.tick_s() + _CANCEL_AGAIN_S
        else:
            self._requests.note_receipt(run.id, attempt.trial.number, event.receipt)
        if attempt.last is not None:
            self._finish(run, attempt, attempt.last)

    def _finish(self, run: ExperimentRun, attempt: Attempt, status: JobStatus) -> None:
        self._backend_pool.free(run, attempt.trial.job_id)
        if "receipt" in status.detail:
            self._requests.note_receipt(run.id, attempt.trial.number, receipt_of(status.detail))
        run.finish(attempt, status)

    def _advance(self, run: ExperimentRun) -> None:
        clocks = self._context.clocks
        if run.over_at_s is not None and run.now_s() > run.over_at_s and not run.stopping:
            budget_s = run.record.spec.budget.time_s
            run.end_all(FinalState(TrialState.CANCELLED, f"the time budget of {budget_s:g} s is used up"))
        tick_s = clocks.tick_s()
        for attempt in run.attempts.values():
            if attempt.is_stop_due:
                self._ask_to_stop(run, attempt)
            if attempt.is_cancel_due(tick_s):
                attempt.cancelling = True
                attempt.cancel_at_s = None
                self._watcher(run).cancel(attempt.trial.job_id, attempt.grace_s)
        run.create_trials()

    def _ask_to_stop(self, run: ExperimentRun, attempt: Attempt) -> None:
        """Ask a trial to end itself; one that does not is cancelled later."""
        assert attempt.ending is not None
        attempt.stop_asked = True
        self._watcher(run).put(attempt.trial.job_id, wire.STOP_FILE, attempt.ending.reason.encode())

    def _start_trials(self, run: ExperimentRun) -> None:
        secrets = self._secrets.get(run.id, {})
        missing = [name for name in run.record.spec.secrets if name not in secrets]
        for attempt in run.attempts.values():
            if not attempt.sent and (attempt.ref or attempt.ending or not missing):
                self._backend_pool.send(run, attempt, secrets)
            elif not attempt.sent:
                run.blocked[attempt.trial.number] = _secrets_missing(missing)
        for number in run.waiting():
            if run.objective_check.reason:
                run.blocked[number] = run.objective_check.block_reason()
            elif missing:
                run.blocked[number] = _secrets_missing(missing)
            else:
                self._backend_pool.start(run, number, secrets)

    def _discovered(self, event: Discovered) -> None:
        self._backend_pool.discovered(event)
        if event.inventory is None:
            for run in list(self.runs.values()):
                if run.record.spec.backend == event.backend:
                    run.give_up(f"the backend {event.backend!r} cannot be used here: {event.reason}")

    def _watcher(self, run: ExperimentRun) -> JobWatcher:
        return self._backend_pool.watcher(run.record.spec.backend)


def _ingest(run: ExperimentRun, attempt: Attempt, event: JobUpdate) -> Ingest:
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


def _secrets_missing(missing: Sequence[str]) -> str:
    names = ", ".join(missing)
    return (
        f"waits for its secret {names}: secrets are kept in memory only, and this manager has not been told it; "
        "it goes on when the experiment is attached where that variable is set"
    )
