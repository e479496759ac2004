"""One unfinished experiment: the state of its trials, as in the store, and what ends them."""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.states import ACTIVE_STATES, FinalState, TrialState
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Placement, TrialSource, TrialSpec
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.core.tuner import Tuner
from jupyter_autotrain.manager.attempts import GRACE_S, Attempt, AttemptHistory, Silence
from jupyter_autotrain.manager.context import ManagerContext, PublishedReasons
from jupyter_autotrain.manager.hooks import runner as hook_runner
from jupyter_autotrain.manager.jobs.metrics_stream import Frames
from jupyter_autotrain.manager.objectives import EarlyStopping, ObjectiveCheck
from jupyter_autotrain.store.decisions import DecisionKind

SOFT_STOP_S = 30.0  # for a trial that looks at `should_stop()` to end itself
_DEAF_S = 0.5  # then a trial that does not is ended
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ExperimentRun:
    """An unfinished experiment.

    Attributes:
        record: As it was when the manager began with it.
        trials: All trials, by number, as they stand in the store.
        active: The numbers of those that are not final.
        clones: The numbers of those that were made on request and not by the search, in order.
        attempts: The attempts that a backend has, by trial number.
        blocked: What blocks a trial, by number: the rest of a sentence that begins with the trial.
        published: What the store holds of what blocks its trials.
        history: Where its attempts are and were.
        untold: The trials that have changed since the tuner was told of them.
    """

    context: ManagerContext
    record: ExperimentRecord
    trials: dict[int, TrialRecord]
    closed: bool
    stopping: bool
    deadline_s: float | None
    early_stopping: EarlyStopping | None = None
    tuner: Tuner | None = None
    active: set[int] = field(default_factory=set)
    clones: list[int] = field(default_factory=list)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    blocked: dict[int, str] = field(default_factory=dict)
    published: PublishedReasons = field(default_factory=PublishedReasons)
    objective_check: ObjectiveCheck = field(default_factory=ObjectiveCheck)
    history: AttemptHistory = field(default_factory=AttemptHistory)
    untold: set[int] = field(default_factory=set)
    failures: int = 0
    closing_reason: str = ""

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.record.id

    @property
    def label(self) -> str:
        """Its display name."""
        return f"{self.record.name}@{self.record.version}"

    @property
    def concurrency(self) -> int:
        """The number of its trials that may run at the same time."""
        return self.record.spec.concurrency

    @property
    def is_over(self) -> bool:
        """True when nothing is left to do."""
        return self.closed and not self.active

    def now_s(self) -> float:
        """Return the present time on this experiment's clock: it never jumps, so differences are durations."""
        clocks = self.context.clocks
        return self.record.now_s(clocks.now_s(), clocks.boot())

    def waiting(self) -> list[int]:
        """Return the trials that wait for their turn, oldest first."""
        return sorted(n for n in self.active if self.trials[n].state is TrialState.WAITING)

    def add_trial(self, number: int, params: Mapping[str, JsonValue], source: TrialSource | None = None) -> None:
        """Create a waiting trial, which may go on from another one."""
        add = self.context.store.add_trial
        self.remember(self.context.retry_store(add, self.id, number, params, self.now_s(), source))

    def set_spec(self, spec: ExperimentSpec) -> None:
        """Take what the store has as the spec from now on."""
        self.record = replace(self.record, spec=spec)
        self.set_deadline()

    def set_deadline(self) -> None:
        """Take the end of the budget of time from the spec."""
        budget_s = self.record.spec.budget.time_s
        self.deadline_s = None if budget_s is None else self.record.begun_s + budget_s

    def reopen(self) -> None:
        """Create further trials as the spec now asks for them, unless its budget forbids that."""
        self.closed = False
        if self.closing_reason:
            self.closing_reason = ""
            self.store_decision("closing", "")
        self.enforce_budget()

    def close(self, reason: str = "") -> None:
        """Create no further trial.

        The store does when the last trial has ended (`store_closing`): one that is closed and idle is not run again.
        """
        self.closed = True
        self.closing_reason = reason
        if reason:
            self.store_decision("closing", reason)

    def store_decision(self, kind: DecisionKind, reason: str) -> None:
        """Store a decision on the experiment; an empty reason withdraws it."""
        self.context.retry_store(self.context.store.decide, self.id, kind, reason)

    def store_closing(self) -> None:
        """Mark the experiment closed in the store: nothing more will happen."""
        tell = partial(hook_runner.of_end, trials=list(self.trials.values()))
        close = partial(self.context.store.close_experiment, tell=tell)
        self.context.retry_store(close, self.id, self.now_s(), self.closing_reason)

    def change_state(
        self,
        number: int,
        state: TrialState,
        reason: str = "",
        *,
        ref: JobRef | None = None,
        placement: Placement | None = None,
        at_s: float | None = None,
    ) -> None:
        """Change a trial's state, in the store and here; without a reason of its own it tells what came before."""
        context = self.context
        now_s = self.now_s()
        begun = f"goes on from {self.trials[number].started_from}" if self.trials[number].source else ""
        reason = reason or self.history.remark(number) or begun
        told = hook_runner.of_trial(self.record, self.trials[number], state, reason)
        change = partial(
            context.store.change_state,
            reason=reason, ref=ref, placement=placement, at_s=at_s, deliveries=told,
        )  # fmt: skip
        self.remember(context.retry_store(change, self.id, number, state, now_s))
        self.history.follow(number, state, at_s or now_s, placement, reason)

    def remember(self, trial: TrialRecord) -> None:
        """Take a trial as the store has it now."""
        self.trials[trial.number] = trial
        self.untold.add(trial.number)
        if trial.state in ACTIVE_STATES:
            self.active.add(trial.number)
        else:
            self.active.discard(trial.number)
        if trial.state is not TrialState.WAITING:
            self.blocked.pop(trial.number, None)
        if trial.source is not None and trial.source.request and trial.number not in self.clones:
            insort(self.clones, trial.number)

    def trial_spec(self, number: int) -> TrialSpec:
        """Return the present attempt of a trial, as a backend takes it."""
        return trial_spec(self.record.spec, self.trials[number])

    def choice(self, attempt: Attempt) -> BackendChoice:
        """Return the backend that has an attempt."""
        return self.record.spec.choice(attempt.placement.backend)

    def update(self, attempt: Attempt, status: JobStatus) -> None:
        """Follow a job that has not ended."""
        number = attempt.trial.number
        if attempt.ref is None:
            attempt.ref = status.ref
        if status.state is TrialState.RUNNING and self.trials[number].state is TrialState.PREPARING:
            self.change_state(number, TrialState.RUNNING, ref=attempt.ref)
        self.blocked.pop(number, None)
        if status.reason:
            self.blocked[number] = status.reason

    def set_progress(self, attempt: Attempt, what: str) -> None:
        """Show what the submit of a trial is doing; nothing any more when that is over."""
        self.blocked.pop(attempt.trial.number, None)
        if what:
            self.blocked[attempt.trial.number] = what

    def set_unknown(self, attempt: Attempt, reason: str, silence: Silence | None = None) -> None:
        """Remember why the status of a job is unknown; an empty reason: it is known again."""
        self.blocked.pop(attempt.trial.number, None)
        attempt.unreachable = silence
        if reason and silence is None:
            self.blocked[attempt.trial.number] = f"cannot be looked at just now: {reason}"

    def reason_to_stop(self, attempt: Attempt, frames: Frames) -> str:
        """Follow what a trial reports, which is in the store already; gives why it shall stop early, or ""."""
        attempt.objective_seen = attempt.objective_seen or frames.objective_seen
        if frames.objective_seen and self.objective_check.mark_reported():
            self.store_decision("objective", "")
        if self.early_stopping is None or attempt.final_state is not None:
            return ""
        try:
            return self.early_stopping.reason_to_stop(attempt.trial.number, frames)
        except Exception as error:  # noqa: BLE001 - a bad rule fails its trial, not the manager
            _log.exception("%s: the early-stopping rule failed", self.label)
            self.early_stopping = None
            reason = f"the early-stopping rule failed: {type(error).__name__}: {error}"
            self.cancel(attempt, FinalState(TrialState.FAILED, reason))
            return ""

    def count_failure(self) -> None:
        """Count a trial that failed and is not tried again."""
        self.failures += 1
        self.enforce_budget()

    def enforce_budget(self) -> None:
        """Close the experiment when its budget of failures is used up."""
        budget = self.record.spec.budget.failures
        if budget is not None and self.failures >= budget and not self.closed:
            self.close(f"its budget of {count(budget, 'failed trial')} is used up")

    def fail_waiting(self, number: int, reason: str) -> None:
        """Fail a trial that could never start."""
        self.change_state(number, TrialState.FAILED, reason)
        self.count_failure()

    def cancel_all(self, final_state: FinalState, grace_s: float = GRACE_S) -> None:
        """Cancel every trial and create no more."""
        self.stopping = True
        if not self.closed:
            self.close(final_state.reason)
        self.cancel_trials(self.active.copy(), final_state, grace_s)

    def cancel_trials(self, numbers: Collection[int], final_state: FinalState, grace_s: float = GRACE_S) -> None:
        """Cancel these trials: the waiting ones now, the others by a cancel that is due immediately."""
        self._store_final_states([self.attempts[number] for number in numbers if number in self.attempts], final_state)
        for number in sorted(numbers):
            if number in self.attempts:
                self.schedule_cancel(self.attempts[number], final_state, grace_s)
            elif self.trials[number].state is TrialState.WAITING:
                self.change_state(number, final_state.state, final_state.reason)

    def cancel(self, attempt: Attempt, final_state: FinalState) -> None:
        """Cancel one attempt; the first decision stays."""
        self._store_final_states([attempt], final_state)
        self.schedule_cancel(attempt, final_state, GRACE_S)

    def _store_final_states(self, attempts: Sequence[Attempt], final_state: FinalState) -> None:
        """Store the decision before anything is done, so that the next manager carries it out as well."""
        new = {(a.trial.number, a.trial.attempt): final_state for a in attempts if a.final_state is None}
        if new:
            self.context.retry_store(self.context.store.decide_ends, self.id, new)

    def schedule_cancel(self, attempt: Attempt, final_state: FinalState, grace_s: float = GRACE_S) -> None:
        """Schedule the cancel of an attempt: now, or a little later when it is stopped early.

        Its one process outlives the signal where it looks at `should_stop()`; several need time to agree.
        """
        wait_s = 0.0
        if final_state.state is TrialState.EARLY_STOPPED:
            is_alone = self.record.spec.resources.ranks == 1
            wait_s = _DEAF_S if is_alone else SOFT_STOP_S
            grace_s = SOFT_STOP_S if is_alone else grace_s
        attempt.schedule_cancel(final_state, grace_s, self.context.clocks.tick_s() + wait_s)

    def fail_all_waiting(self, reason: str) -> None:
        """Fail what waits and create no more: the backend cannot be used."""
        self.stopping = True
        if not self.closed:
            self.close(reason)
        if not self.trials:
            self.add_trial(1, {})  # so that there is a trial to carry the reason
        for number in self.waiting():
            self.fail_waiting(number, reason)


def isolated(run: ExperimentRun, step: Callable[[], None]) -> None:
    """Make a step in the handling of an experiment; when it raises, the experiment ends with that reason."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the log has it whole
        _log.exception("%s: a fault", run.label)
        if not run.stopping:
            reason = f"a fault in the manager: {type(error).__name__}: {error}"
            run.cancel_all(FinalState(TrialState.FAILED, reason))
