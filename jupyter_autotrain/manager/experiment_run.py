"""One experiment under way: its trials as they stand, and the decisions that concern it alone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import JobRef, JobStatus, Profile
from jupyter_autotrain.core.inventory import AcceleratorPolicy
from jupyter_autotrain.core.json import JsonValue, from_json
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import ACTIVE_STATES, FinalState, TrialState
from jupyter_autotrain.core.tuner import Observation, Tuner
from jupyter_autotrain.core.wording import count
from jupyter_autotrain.manager.attempt import GRACE_S, Attempt
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.early_stopping import EarlyStopping
from jupyter_autotrain.manager.final_state import decide, try_again
from jupyter_autotrain.manager.frames import Frames
from jupyter_autotrain.manager.node_allocator import Need
from jupyter_autotrain.manager.objective_check import ObjectiveCheck
from jupyter_autotrain.store.decisions import DecisionKind

SOFT_STOP_S = 30.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ExperimentRun:
    """An unfinished experiment.

    Attributes:
        record: As it was when the manager took it up.
        trials: All trials, by number, as they stand in the store.
        active: The numbers of those that are not final.
        tasks: Those that a place has, by number.
        blocked: What keeps a trial from going on, by number: the rest of a sentence that begins with the trial.
    """

    context: ManagerContext
    record: ExperimentRecord
    trials: dict[int, TrialRecord]
    concurrency: int
    closed: bool
    stopping: bool
    over_at_s: float | None
    early_stopping: EarlyStopping | None = None
    tuner: Tuner | None = None
    active: set[int] = field(default_factory=set)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    blocked: dict[int, str] = field(default_factory=dict)
    published: dict[int, str] = field(default_factory=dict)
    objective_check: ObjectiveCheck = field(default_factory=ObjectiveCheck)
    failures: int = 0
    closing_reason: str = ""

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.record.id

    @property
    def label(self) -> str:
        """How people call it."""
        return f"{self.record.name}@{self.record.version}"

    @property
    def is_over(self) -> bool:
        """True when nothing is left to do."""
        return self.closed and not self.active

    def now_s(self) -> float:
        """The present time as it is counted for this experiment: it never jumps, so differences are durations."""
        clocks = self.context.clocks
        return self.record.now_s(clocks.now_s(), clocks.boot())

    def waiting(self) -> list[int]:
        """The trials that wait for their turn, oldest first."""
        return sorted(n for n in self.active if self.trials[n].state is TrialState.WAITING)

    def create_trials(self) -> None:
        """Fill the free slots with new trials, until there are as many as were asked for."""
        if self.objective_check.reason and not self.attempts:
            self._end_blocked()
        while self._may_create():
            number = max(self.trials, default=0) + 1
            try:
                params = self._suggest(number)
            except Exception as error:  # noqa: BLE001 - a bad tuner fails its trial, not the manager
                _log.exception("%s: the tuner failed", self.label)
                reason = f"the tuner {self.record.spec.tuner!r} failed: {type(error).__name__}: {error}"
                self._add(number, {})
                self.change_state(number, TrialState.FAILED, reason)
                self.close(reason)
                return
            if params is None:
                self.close(f"the search space is used up after {len(self.trials)} trials")
                return
            self._add(number, params)
        if not self.closed and len(self.trials) >= self.record.spec.trials:
            self.close()

    def _may_create(self) -> bool:
        slots = len(self.active) < self.concurrency
        spec = self.record.spec
        return slots and not self.closed and not self.objective_check.reason and len(self.trials) < spec.trials

    def _suggest(self, number: int) -> Mapping[str, JsonValue] | None:
        spec = self.record.spec
        if not spec.search:
            return {}
        if self.tuner is None:
            self.tuner = self.context.retry_transient(self.context.factories.create_tuner, spec)
        history = [Observation(t.number, t.params, t.state, t.value) for t in self.trials.values()]
        return self.context.retry_transient(self.tuner.suggest, number, history)

    def _add(self, number: int, params: Mapping[str, JsonValue]) -> None:
        context = self.context
        self._keep(context.retry_store(context.store.add_trial, self.id, number, params, self.now_s()))

    def close(self, reason: str = "") -> None:
        """Create no further trial.

        The store marks it closed when the last trial has ended (`keep_end`), not before: an experiment that is closed
        and has no active trial is not taken up again.
        """
        self.closed = True
        self.closing_reason = reason
        if reason:
            self._decide("closing", reason)

    def _decide(self, kind: DecisionKind, reason: str) -> None:
        self.context.retry_store(self.context.store.decide, self.id, kind, reason)

    def keep_end(self) -> None:
        """Tell the store that nothing more will happen."""
        context = self.context
        context.retry_store(context.store.close_experiment, self.id, self.now_s(), self.closing_reason)

    def change_state(
        self,
        number: int,
        state: TrialState,
        reason: str = "",
        *,
        ref: JobRef | None = None,
        placement: Placement | None = None,
    ) -> None:
        """Change a trial's state, in the store and here."""
        context = self.context
        change = partial(context.store.change_state, reason=reason, ref=ref, placement=placement)
        self._keep(context.retry_store(change, self.id, number, state, self.now_s()))

    def _keep(self, trial: TrialRecord) -> None:
        self.trials[trial.number] = trial
        if trial.state in ACTIVE_STATES:
            self.active.add(trial.number)
        else:
            self.active.discard(trial.number)
        if trial.state is not TrialState.WAITING:
            self.blocked.pop(trial.number, None)

    def need(self, number: int, profile: Profile) -> Need:
        """What a trial asks for of a place."""
        trial = self.trials[number]
        spec = self.record.spec
        label = f"trial {number} of {self.label}"
        policy = from_json(AcceleratorPolicy, {**profile.options, **spec.backend_options})
        return Need(f"{self.id}-{number}-{trial.attempt}", label, spec.resources, policy)

    def trial_spec(self, number: int) -> TrialSpec:
        """The present attempt of a trial, as a backend takes it."""
        return trial_spec(self.record.spec, self.trials[number])

    def placement(self, number: int) -> Placement:
        """Where the present attempt of a trial was put."""
        return self.trials[number].placement

    def seen(self, attempt: Attempt, status: JobStatus) -> None:
        """Follow a job that goes on."""
        number = attempt.trial.number
        if attempt.ref is None:
            attempt.ref = status.ref
        if status.state is TrialState.RUNNING and self.trials[number].state is TrialState.PREPARING:
            self.change_state(number, TrialState.RUNNING, ref=attempt.ref)

    def doubt(self, attempt: Attempt, reason: str) -> None:
        """Remember why it cannot be told how a trial stands; an empty reason: it can."""
        self.blocked.pop(attempt.trial.number, None)
        if reason:
            self.blocked[attempt.trial.number] = f"cannot be looked at just now: {reason}"

    def take(self, attempt: Attempt, frames: Frames) -> str:
        """Follow what a trial reports, already in the store; gives why it shall stop early, or ""."""
        attempt.objective_seen = attempt.objective_seen or frames.objective_seen
        if frames.objective_seen and self.objective_check.mark_reported():
            self._decide("objective", "")
        if self.early_stopping is None or attempt.ending is not None:
            return ""
        try:
            return self.early_stopping.reason_to_stop(attempt.trial.number, frames)
        except Exception as error:  # noqa: BLE001 - a bad rule fails its trial, not the manager
            _log.exception("%s: the early-stopping rule failed", self.label)
            self.early_stopping = None
            reason = f"the early-stopping rule failed: {type(error).__name__}: {error}"
            self.end(attempt, FinalState(TrialState.FAILED, reason))
            return ""

    def finish(self, attempt: Attempt, status: JobStatus) -> None:
        """Give a trial its final state, and begin another attempt when one is due."""
        number = attempt.trial.number
        names = self._names_instead(attempt, status)
        end = decide(status, attempt.ending, attempt.trial.objective, names)
        blocks_others = self.objective_check.check_end(number, attempt.trial.objective, end, status, names)
        if blocks_others:
            self._decide(
                "objective", self.objective_check.reason
            )  # before the end is stored, so that neither is without the other
        del self.attempts[number]
        self.change_state(number, end.state, end.reason, ref=attempt.ref or status.ref)
        if blocks_others:
            self.count_failure()
        else:
            self.retry_or_count(number)

    def _end_blocked(self) -> None:
        """No trial that could report the objective runs any more: what was held back never begins."""
        waiting = self.waiting()
        left = len(waiting) + (0 if self.closed else self.record.spec.trials - len(self.trials))
        reason = self.objective_check.closing_reason(left)
        self.objective_check.reason = ""
        if left:
            self.close(reason)
        self.end_some(waiting, FinalState(TrialState.CANCELLED, reason))
        self._decide("objective", "")

    def _names_instead(self, attempt: Attempt, status: JobStatus) -> list[str] | None:
        """The metrics reported in place of the objective; None when it was reported."""
        if not attempt.trial.objective or status.state is not TrialState.SUCCEEDED or attempt.objective_seen:
            return None
        trial = attempt.trial
        names = self.context.retry_store(self.context.store.metric_names, self.id, trial.number, trial.attempt)
        return None if trial.objective in names else sorted(names)

    def retry_or_count(self, number: int) -> None:
        """After an end: another attempt when `retries` allows it, else one failure more."""
        trial = self.trials[number]
        retries = self.record.spec.retries
        if not self.stopping and try_again(self.record.spec, trial.state, trial.attempt):
            if self.early_stopping is not None:
                self.early_stopping.forget(number)
            self.change_state(
                number, TrialState.WAITING, f"attempt {trial.attempt + 1} of {retries + 1}: {trial.reason}"
            )
        elif trial.state is TrialState.FAILED:
            self.count_failure()

    def count_failure(self) -> None:
        """Count a trial that failed for good."""
        self.failures += 1
        self.keep_budget()

    def keep_budget(self) -> None:
        """Close the experiment when its budget of failures is used up."""
        budget = self.record.spec.budget.failures
        if budget is not None and self.failures >= budget and not self.closed:
            self.close(f"its budget of {count(budget, 'failed trial')} is used up")

    def fail_waiting(self, number: int, reason: str) -> None:
        """Fail a trial that could never start."""
        self.change_state(number, TrialState.FAILED, reason)
        self.count_failure()

    def end_all(self, ending: FinalState, grace_s: float = GRACE_S) -> None:
        """End every trial and create no more."""
        self.stopping = True
        if not self.closed:
            self.close(ending.reason)
        self.end_some(self.active.copy(), ending, grace_s)

    def end_some(self, numbers: Collection[int], ending: FinalState, grace_s: float = GRACE_S) -> None:
        """End some trials: the waiting ones now, the others by a cancel that is due at once."""
        self._keep_ends([self.attempts[number] for number in numbers if number in self.attempts], ending)
        for number in sorted(numbers):
            if number in self.attempts:
                self._end(self.attempts[number], ending, grace_s)
            elif self.trials[number].state is TrialState.WAITING:
                self.change_state(number, ending.state, ending.reason)

    def end(self, attempt: Attempt, ending: FinalState) -> None:
        """Have one attempt end; what was decided first stays decided."""
        self._keep_ends([attempt], ending)
        self._end(attempt, ending, GRACE_S)

    def resume_end(self, attempt: Attempt, ending: FinalState) -> None:
        """Carry out a decision that the store holds from before."""
        self._end(attempt, ending, GRACE_S)

    def _keep_ends(self, attempts: Sequence[Attempt], ending: FinalState) -> None:
        """Store the decision before anything is done, so that the next manager carries it out as well."""
        new = {(a.trial.number, a.trial.attempt): ending for a in attempts if a.ending is None}
        if new:
            self.context.retry_store(self.context.store.decide_ends, self.id, new)

    def _end(self, attempt: Attempt, ending: FinalState, grace_s: float) -> None:
        """Cancel an attempt: at once, or after some time to end itself when it is stopped early."""
        attempt.ending = attempt.ending or ending
        attempt.grace_s = grace_s
        wait_s = SOFT_STOP_S if ending.state is TrialState.EARLY_STOPPED else 0.0
        due = self.context.clocks.tick_s() + wait_s
        attempt.cancel_at_s = due if attempt.cancel_at_s is None else min(due, attempt.cancel_at_s)

    def give_up(self, reason: str) -> None:
        """Fail what waits and create no more: the place cannot be used."""
        self.stopping = True
        if not self.closed:
            self.close(reason)
        if not self.trials:
            self._add(1, {})  # so that there is a trial to carry the reason
        for number in self.waiting():
            self.fail_waiting(number, reason)

    def lose(self, reason: str) -> None:
        """Give up also the trials that a place has, because it cannot be asked about them any more."""
        self.give_up(reason)
        for attempt in list(self.attempts.values()):
            ref = attempt.ref or JobRef(self.record.spec.backend, attempt.trial.job_id)
            self.finish(attempt, JobStatus(ref, TrialState.LOST, reason))
