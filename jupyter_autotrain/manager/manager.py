"""One step of the manager: everything that can be done now, in the order of the data flow.

Events of jobs are stored, then requests and new experiments are read, tuners asked for trials, trials placed and
submitted, and what blocks the others is stored. Job watchers poll in threads of their own and send the next events.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import STANDARD
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager import reasons, session_gpus
from jupyter_autotrain.manager.attempts import Attempt
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.context import ManagerContext, SecretValues, Threads
from jupyter_autotrain.manager.event_handler import EventHandler
from jupyter_autotrain.manager.experiment_run import ExperimentRun, isolated
from jupyter_autotrain.manager.federated.trainings import FederatedTrainings
from jupyter_autotrain.manager.hooks import runner as hook_runner
from jupyter_autotrain.manager.hooks.runner import HookRunner
from jupyter_autotrain.manager.jobs.events import EventQueue
from jupyter_autotrain.manager.jobs.watcher import JobWatcher
from jupyter_autotrain.manager.queue.turns import Claim, in_turn
from jupyter_autotrain.manager.recovery import recover_run
from jupyter_autotrain.manager.requests import RequestHandler
from jupyter_autotrain.manager.search import create_trials
from jupyter_autotrain.manager.trial_start import Placed, TrialPlacer

_STARTING_S = 10.0  # a start that takes longer is told
_CANCEL_S = 15.0  # beside the time that a trial has to end itself
_log = logging.getLogger(__name__)


class Manager:
    """All experiments of a home.

    Attributes:
        runs: The unfinished experiments, by id, oldest first.
    """

    def __init__(
        self, context: ManagerContext, event_queue: EventQueue, threads: Threads, *, start_watchers: bool = True
    ) -> None:
        self.runs: dict[str, ExperimentRun] = {}
        self._context = context
        self._event_queue = event_queue
        self._backend_pool = BackendPool(context, event_queue.emit, threads, start_watchers=start_watchers)
        self._placer = TrialPlacer(self._backend_pool)
        self._requests = RequestHandler(context, self, threads.calls())
        self._secrets = SecretValues()
        self._hooks = HookRunner(context, self._secrets)
        self._trainings = FederatedTrainings(event_queue.emit)
        self._events = EventHandler(context, self.runs, self._backend_pool, self._requests)

    @property
    def is_idle(self) -> bool:
        """True when there is nothing to do and nothing to wait for."""
        return not self.runs and not self._requests.is_busy and not self._hooks.is_busy

    def step(self, messages: Sequence[JsonObject], *, read_store: bool) -> None:
        """Do everything that can be done now.

        Args:
            messages: What clients sent to the socket.
            read_store: True to read the store for new experiments and requests.
        """
        self._secrets.receive(messages)
        self._backend_pool.prepare(messages)
        self._events.handle(self._event_queue.drain())
        if read_store:
            self._read_store()
        for run in list(self.runs.values()):
            isolated(run, partial(self._end_due, run))
            isolated(run, partial(create_trials, run))
            isolated(run, partial(self._trainings.follow, run, self._backend_pool.backend))
        self._start_trials()
        for run in list(self.runs.values()):
            self._publish(run)
            if run.is_over:
                self._remove(run)
        self._requests.finish_stops()
        self._hooks.step(read_store=read_store)

    def adopt(self, run: ExperimentRun) -> None:
        """Begin with an experiment: watch what runs, reserve what it uses."""
        self.runs[run.id] = run
        self._backend_pool.open(run)

    def remove_trials(self, profiles: Sequence[Profile], experiment_id: str) -> None:
        """Have the trial directories of an experiment, which was deleted, deleted at these places too."""
        self._backend_pool.remove_trials(profiles, experiment_id)

    def _publish(self, run: ExperimentRun) -> None:
        """Store what blocks each trial, and which nodes do not answer, when that has changed."""
        context = self._context
        backends = self._backend_pool.unreachable_reasons(run)
        nodes = reasons.find(run, backends, context.clocks.now_s())
        on_them = reasons.block_reasons(run, backends, nodes)
        run.published.unreachable = frozenset(on_them)
        starting = reasons.starting_reasons(run, context.clocks.tick_s() - _STARTING_S)
        run.published.publish(context, run.id, starting | run.blocked | on_them, nodes)

    def _remove(self, run: ExperimentRun) -> None:
        run.store_closing()
        del self.runs[run.id]
        self._trainings.forget(run.id)
        if run.record.spec.hooks:
            self._hooks.expect(run.id)
        else:
            self._secrets.forget(run.id)
        _log.info("%s (%s) is over", run.label, run.id)

    def _read_store(self) -> None:
        """Begin with new experiments and requests."""
        store = self._context.store
        for record in self._context.retry_store(store.unfinished):
            if record.id not in self.runs:
                self._begin(record)
        self._requests.handle(self._context.retry_store(store.pending_requests))

    def _begin(self, record: ExperimentRecord) -> None:
        context = self._context
        _log.info("%s@%d (%s) begins", record.name, record.version, record.id)
        try:
            run = context.retry_transient(recover_run, context, record)
        except Exception as error:  # noqa: BLE001 - one bad experiment must not stop the manager
            _log.exception("%s cannot begin", record.id)
            reason = f"it cannot begin: {error}"
            close = partial(context.store.close_experiment, tell=hook_runner.of_end)
            context.retry_store(close, record.id, context.clocks.now_s(), reason)
            return
        self.adopt(run)
        if record.stop_requested:
            run.cancel_all(FinalState(TrialState.CANCELLED, "stopped on request"))

    def _end_due(self, run: ExperimentRun) -> None:
        """End what is due: the experiment by its budget of time, trials by earlier decisions."""
        clocks = self._context.clocks
        if run.deadline_s is not None and run.now_s() > run.deadline_s and not run.stopping:
            budget_s = run.record.spec.budget.time_s
            run.cancel_all(FinalState(TrialState.CANCELLED, f"the time budget of {budget_s:g} s is used up"))
        tick_s = clocks.tick_s()
        for attempt in run.attempts.values():
            if attempt.move is not None and attempt.final_state is not None:
                self._watcher(run, attempt).abandon(attempt.trial.job_id, attempt.move)
                attempt.move = None
            if attempt.is_stop_due:
                self._ask_to_stop(run, attempt)
            if attempt.is_cancel_due(tick_s):
                attempt.cancelling = True
                attempt.cancel_at_s = None
                attempt.overdue_s = tick_s + attempt.grace_s + _CANCEL_S
                self._watcher(run, attempt).cancel(attempt.trial.job_id, attempt.grace_s)

    def _ask_to_stop(self, run: ExperimentRun, attempt: Attempt) -> None:
        """Ask a trial to end itself; one that does not is cancelled later."""
        assert attempt.final_state is not None
        attempt.stop_asked = True
        self._watcher(run, attempt).put(attempt.trial.job_id, wire.STOP_FILE, attempt.final_state.reason.encode())

    def _start_trials(self) -> None:
        """Go through the queue of all experiments: each trial in its turn is started, or told what it waits for."""
        self._placer.begin_round()
        runs = list(self.runs.values())
        for run in runs:
            isolated(run, partial(self._submit_placed, run))
            if run.record.spec.mode == STANDARD:
                isolated(run, partial(session_gpus.follow, run, self._backend_pool))
        for claim, number in in_turn(list(map(self._claim, runs))):
            run = self.runs[claim.id]
            isolated(run, partial(self._place, run, number))
            claim.held = len(run.attempts)
            if refusal := self._placer.refusal(run):
                usual = list(filter(run.history.is_usual, claim.waiting))
                run.blocked.update(dict.fromkeys(usual, refusal.sentence))
                claim.waiting = deque(number for number in claim.waiting if not run.history.is_usual(number))

    def _submit_placed(self, run: ExperimentRun) -> None:
        """Submit what has a place and was not submitted, or not with success."""
        missing = self._secrets.block_reason(run.id, run.record.spec)
        for attempt in run.attempts.values():
            if attempt.submitted or attempt.submit_at_s > self._context.clocks.tick_s():
                continue
            if attempt.ref or attempt.final_state or not missing:
                self._backend_pool.submit(run, attempt, self._secrets.of(run.id))
            else:
                run.blocked[attempt.trial.number] = missing

    def _claim(self, run: ExperimentRun) -> Claim:
        """Return what an experiment has and wants; what its trials beyond that wait for is noted."""
        spec = run.record.spec
        waiting = run.waiting()
        held = len(run.attempts)
        room = max(run.concurrency - held, 0)
        reason = run.objective_check.block_reason() if run.objective_check.reason else ""
        if reason := reason or self._secrets.block_reason(run.id, spec):
            room = 0
        reason = reason or f"waits: {count(held + room, 'trial')} of this experiment run, its limit (`concurrency:`)"
        run.blocked.update(dict.fromkeys(waiting[room:], reason))
        return Claim(run.id, spec.priority, spec.weight, held, deque(waiting[:room]))

    def _place(self, run: ExperimentRun, number: int) -> None:
        """Start a waiting trial where it ends first; else note what it waits for."""
        if run.trials[number].state is not TrialState.WAITING:
            return
        placed = self._placer.place(run, number)
        if isinstance(placed, Placed):
            self._backend_pool.reserve(placed.reservation)
            placement = replace(placed.reservation.placement, backend=placed.choice.profile.name)
            run.change_state(number, TrialState.PREPARING, placed.reason, placement=placement)
            run.attempts[number] = attempt = Attempt(run.trial_spec(number), placement)
            self._backend_pool.submit(run, attempt, self._secrets.of(run.id))
        elif placed.permanent:
            run.fail_waiting(number, placed.sentence)
        else:
            run.blocked[number] = placed.sentence

    def _watcher(self, run: ExperimentRun, attempt: Attempt) -> JobWatcher:
        return self._backend_pool.watcher(run.choice(attempt))
