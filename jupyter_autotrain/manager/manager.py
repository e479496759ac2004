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
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager import notices
from jupyter_autotrain.manager.events import Cancelled, Discovered, Doubted, Event, Refused, Seen, Silence, Submitted
from jupyter_autotrain.manager.house import House
from jupyter_autotrain.manager.lane import Lane
from jupyter_autotrain.manager.mailbox import Mailbox
from jupyter_autotrain.manager.places import Places
from jupyter_autotrain.manager.recovery import take_up
from jupyter_autotrain.manager.requests import Desk
from jupyter_autotrain.manager.run import SOFT_STOP_S, Run
from jupyter_autotrain.manager.task import Task
from jupyter_autotrain.manager.verdict import Ending
from jupyter_autotrain.store import Ingest

_CANCEL_AGAIN_S = 5.0
_log = logging.getLogger(__name__)


class Manager:
    """All experiments of a home.

    Attributes:
        runs: The unfinished experiments, by id, oldest first.
    """

    def __init__(self, house: House, mailbox: Mailbox, executor: Executor, *, start_lanes: bool = True) -> None:
        self.runs: dict[str, Run] = {}
        self._house, self._mailbox = house, mailbox
        self._places = Places(house, mailbox.emit, executor, start_lanes=start_lanes)
        self._desk = Desk(house, self)
        self._secrets: dict[str, dict[str, str]] = {}

    @property
    def is_idle(self) -> bool:
        """True when there is nothing to do and nothing to wait for."""
        return not self.runs and not self._desk.is_busy

    def turn(self, messages: Sequence[JsonObject], *, look: bool) -> None:
        """Do everything that can be done now.

        Args:
            messages: What was told at the doorbell.
            look: True to look in the store for new experiments and requests.
        """
        for message in messages:
            self._learn(message)
        self._take_in(self._mailbox.drain())
        if look:
            self._look_in_store()
        for run in list(self.runs.values()):
            self._guarded(run, partial(self._advance, run))
        self._places.begin_round()
        for run in list(self.runs.values()):
            self._guarded(run, partial(self._start_trials, run))
        for run in list(self.runs.values()):
            self._publish(run)
            if run.is_over:
                self._drop(run)
        self._desk.settle()

    def adopt(self, run: Run) -> None:
        """Take an experiment up: watch what runs, hold what it holds."""
        self.runs[run.id] = run
        self._places.open(run)

    def _publish(self, run: Run) -> None:
        """Write down what keeps each trial, when that has changed."""
        reasons = dict(run.blocked)
        if silence := self._places.silence(run.record.spec.backend):
            reasons |= dict.fromkeys(run.tasks, f"is with a place that does not answer: {silence}")
        if reasons != run.published:
            run.published = reasons
            notices.publish(self._house.home.experiment(run.id), reasons)

    def _drop(self, run: Run) -> None:
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
        store, insist = self._house.store, self._house.insist
        for record in insist(store.unfinished):
            if record.id not in self.runs:
                _log.info("%s@%d (%s) taken up", record.name, record.version, record.id)
                try:
                    run = self._house.patiently(take_up, self._house, record)
                except Exception as error:  # noqa: BLE001 - one bad experiment must not stop the manager
                    _log.exception("%s cannot be taken up", record.id)
                    reason = f"it cannot be taken up: {error}"
                    insist(store.close_experiment, record.id, self._house.clocks.now_s(), reason)
                    continue
                self.adopt(run)
                if record.stop_requested:
                    run.end_all(Ending(TrialState.CANCELLED, "stopped on request"))
        self._desk.take_in(insist(store.pending_requests))

    def _guarded(self, run: Run, step: Callable[[], None]) -> None:
        """A fault in one experiment's handling ends that experiment, not the manager."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the log has it whole
            _log.exception("%s: a fault", run.label)
            if run.stopping:
                return
            run.end_all(Ending(TrialState.FAILED, f"a fault in the manager: {type(error).__name__}: {error}"))

    def _take_in(self, events: list[Event]) -> None:
        seen = [(event, *found) for event in events if isinstance(event, Seen) and (found := self._find(event.job_id))]
        rows = [_ingest(run, task, event) for event, run, task in seen if event.frames.is_news]
        if rows:
            self._house.insist(self._house.store.ingest, rows)
        for event in events:
            if isinstance(event, Discovered):
                self._discovered(event)
            elif isinstance(event, Silence):
                self._places.keep_silence(event)
            elif found := self._find(event.job_id):
                run, task = found
                self._guarded(run, partial(self._follow, run, task, event))

    def _find(self, job_id: str) -> tuple[Run, Task] | None:
        experiment_id, number, attempt = job_id.rsplit("-", 2)
        run = self.runs.get(experiment_id)
        task = run.tasks.get(int(number)) if run else None
        return (run, task) if run and task and task.trial.attempt == int(attempt) else None

    def _follow(self, run: Run, task: Task, event: Submitted | Refused | Seen | Doubted | Cancelled) -> None:
        if isinstance(event, Submitted):
            task.ref = event.ref
            self._house.insist(partial(self._house.store.annotate, run.id, task.trial.number, ref=event.ref))
        elif isinstance(event, Refused):
            ref = JobRef(run.record.spec.backend, event.job_id)
            self._finish(run, task, JobStatus(ref, TrialState.FAILED, event.reason))
        elif isinstance(event, Cancelled):
            self._cancelled(run, task, event)
        elif isinstance(event, Doubted):
            run.doubt(task, event.reason)
        else:
            self._seen(run, task, event)

    def _seen(self, run: Run, task: Task, event: Seen) -> None:
        if reason := run.take(task, event.frames):
            self._stop_softly(run, task, reason)
        if not event.status.state.is_final:
            run.seen(task, event.status)
        elif task.cancelling:
            task.last = event.status
        else:
            self._finish(run, task, event.status)

    def _stop_softly(self, run: Run, task: Task, reason: str) -> None:
        run.end(task, Ending(TrialState.EARLY_STOPPED, reason), after_s=SOFT_STOP_S)
        mark = self._house.home.trial(run.id, task.trial.number, task.trial.attempt) / wire.STOP_FILE
        try:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            wire.write_atomically(str(mark), reason.encode(), sync=False)
        except OSError as error:  # a full disk, or the trial's own code lies in the way: then it is cancelled later
            _log.warning("%s cannot be written: %s", mark, error)
        self._lane(run).put(task.trial.job_id, wire.STOP_FILE, reason.encode())

    def _cancelled(self, run: Run, task: Task, event: Cancelled) -> None:
        task.cancelling = False
        if event.receipt is None:
            _log.warning("%s was not cancelled, trying again: %s", event.job_id, event.reason)
            task.cancel_at_s = self._house.clocks.tick_s() + _CANCEL_AGAIN_S
        else:
            self._desk.note_receipt(run.id, task.trial.number, event.receipt)
        if task.last is not None:
            self._finish(run, task, task.last)

    def _finish(self, run: Run, task: Task, status: JobStatus) -> None:
        self._places.free(run, task.trial.job_id)
        if "receipt" in status.detail:
            self._desk.note_receipt(run.id, task.trial.number, receipt_of(status.detail))
        run.finish(task, status)

    def _advance(self, run: Run) -> None:
        clocks = self._house.clocks
        if run.over_at_s is not None and run.now_s() > run.over_at_s and not run.stopping:
            budget_s = run.record.spec.budget.time_s
            run.end_all(Ending(TrialState.CANCELLED, f"the time budget of {budget_s:g} s is used up"))
        tick_s = clocks.tick_s()
        for task in run.tasks.values():
            if task.is_cancel_due(tick_s):
                task.cancelling, task.cancel_at_s = True, None
                self._lane(run).cancel(task.trial.job_id, task.grace_s)
        run.create_trials()

    def _start_trials(self, run: Run) -> None:
        secrets = self._secrets.get(run.id, {})
        missing = [name for name in run.record.spec.secrets if name not in secrets]
        for task in run.tasks.values():
            if not task.sent and (task.ref or task.ending or not missing):
                self._places.send(run, task, secrets)
            elif not task.sent:
                run.blocked[task.trial.number] = _secrets_missing(missing)
        for number in run.waiting():
            if run.hold.reason:
                run.blocked[number] = run.hold.sentence()
            elif missing:
                run.blocked[number] = _secrets_missing(missing)
            else:
                self._places.start(run, number, secrets)

    def _discovered(self, event: Discovered) -> None:
        self._places.discovered(event)
        if event.inventory is None:
            for run in list(self.runs.values()):
                if run.record.spec.backend == event.backend:
                    run.give_up(f"the backend {event.backend!r} cannot be used here: {event.reason}")

    def _lane(self, run: Run) -> Lane:
        return self._places.lane(run.record.spec.backend)


def _ingest(run: Run, task: Task, event: Seen) -> Ingest:
    trial, frames = task.trial, event.frames
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
