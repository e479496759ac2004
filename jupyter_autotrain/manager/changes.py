"""Changes of an experiment on request, while it runs or after its end: more trials, trials again, clones of trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.trial_content import saved_attempt
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import ExperimentRecord, Request, TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, TrialSource
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.recovery import recover_run
from jupyter_autotrain.manager.stops import numbers_of
from jupyter_autotrain.manager.trial_end import earlier
from jupyter_autotrain.store.trials import Clone

_STOPPED: Final = frozenset({TrialState.CANCELLED, TrialState.LOST, TrialState.PREEMPTED})
_TRIED_AGAIN: Final = _STOPPED | {TrialState.FAILED}


class RunRegistry(Protocol):
    """The experiments under way, as the manager keeps them."""

    runs: dict[str, ExperimentRun]

    def adopt(self, run: ExperimentRun) -> None:
        """Begin with an experiment."""

    def remove_trials(self, profiles: Sequence[Profile], experiment_id: str) -> None:
        """Have the trial directories of an experiment deleted at these places."""


class ExperimentChanges:
    """The requests that change an experiment.

    Args:
        context: The home.
        manager: The experiments under way.
    """

    def __init__(self, context: ManagerContext, manager: RunRegistry) -> None:
        self._context = context
        self._manager = manager

    def retry(self, request: Request) -> JsonObject:
        """Run bad trials again; of an experiment that has ended no others are created."""
        context = self._context
        run = self._manager.runs.get(request.experiment_id)
        ended = run is None
        if run is None:
            run = recover_run(context, self._record(request), again=True)
        chosen = _chosen(run, _TRIED_AGAIN, numbers_of(request.args))
        if chosen:
            context.retry_store(context.store.withdraw_stop, run.id)
            if ended:
                now_s = run.now_s()
                context.retry_store(context.store.begin_retry, run.id, now_s)
                run.record = replace(run.record, retried_s=now_s)
            run.stopping = False
            self._manager.adopt(run)
        _run_again(run, chosen, "tried again on request")
        return {"trials": [*chosen]}

    def resume(self, request: Request) -> JsonObject:
        """Go on with a stopped experiment: with its stopped trials, then with those that it has not created."""
        record = self._record(request)
        trials = self._context.retry_store(self._context.store.trials, record.id)
        left = max(record.spec.trials - len(trials), 0)
        if not left and not any(trial.state in _STOPPED for trial in trials):
            return {"trials": [], "left": 0}
        run = self._open(record)
        chosen = _chosen(run, _STOPPED, None)
        _run_again(run, chosen, "resumed on request")
        return {"trials": [*chosen], "left": left}

    def update(self, request: Request) -> JsonObject:
        """Change how many trials there are, how many run at the same time, and the budget."""
        context = self._context
        record = self._record(request)
        self._refuse_while_stopping(record)
        spec = _changed(record.spec, request.args)
        context.retry_store(context.store.change_spec, record.id, spec)
        record = replace(record, spec=spec)
        if record.id in self._manager.runs or spec.trials > sum(record.counts.values()):
            self._open(record)
        return {"trials": spec.trials, "concurrency": spec.concurrency}

    def clone(self, request: Request) -> JsonObject:
        """Add trials that go on from the checkpoints of others, with some parameters changed."""
        context = self._context
        record = self._record(request)
        if not record.spec.has_independent_trials:
            raise AutotrainError(
                f"{record.label} is a session, or its trials train one model together.",
                "An experiment whose trials run by themselves.",
                "Submit its cell once more, with the changes.",
            )
        trials = {trial.number: trial for trial in context.retry_store(context.store.trials, record.id)}
        made = [number for number, trial in trials.items() if trial.source and trial.source.request == request.id]
        if made:  # by a manager that was killed before it could answer
            return {"trials": [*made]}
        params = request.args.get("params")
        changed = params if isinstance(params, Mapping) else {}
        numbers = numbers_of(request.args) or []
        clones = [self._clone(record, trials.get(number), changed, request.id) for number in numbers]
        if not clones:
            raise AutotrainError(f"{record.label}: no trial to continue from.", "The numbers of trials.", "Name some.")
        run = self._open(record)
        added = context.retry_store(context.store.add_clones, run.id, run.record.spec, clones, run.now_s())
        run.set_spec(replace(run.record.spec, trials=run.record.spec.trials + len(added)))
        for trial in added:
            run.remember(trial)
        return {"trials": [trial.number for trial in added]}

    def _clone(
        self, record: ExperimentRecord, trial: TrialRecord | None, changed: Mapping[str, JsonValue], request_id: int
    ) -> Clone:
        if trial is None:
            raise AutotrainError(f"{record.label} has no such trial.", "One of its trials.", "See its table of trials.")
        if unknown := [name for name in changed if name not in trial.params]:
            raise AutotrainError(
                f"{', '.join(unknown)} is not a parameter of {record.label}.",
                f"Its parameters are {', '.join(trial.params) or 'none'}.",
                f"Add it to `search:`, and submit the cell with `start_from: {record.label}#{trial.number}`.",
            )
        attempt = saved_attempt(self._context.home, trial) or trial.attempt
        source = TrialSource(record.id, trial.number, attempt, f"trial {trial.number}", request_id)
        return {**trial.params, **changed}, source

    def _record(self, request: Request) -> ExperimentRecord:
        return self._context.retry_store(self._context.store.experiment, request.experiment_id)

    def _refuse_while_stopping(self, record: ExperimentRecord) -> None:
        run = self._manager.runs.get(record.id)
        if run is not None and run.stopping and run.active:
            raise AutotrainError(
                f"{record.label} is being stopped.", "One that runs or has ended.", "Ask again when it has stopped."
            )

    def _open(self, record: ExperimentRecord) -> ExperimentRun:
        """Return an experiment that creates trials: as it is where it runs, else begun again."""
        self._refuse_while_stopping(record)
        context = self._context
        run = self._manager.runs.get(record.id)
        if run is not None and not run.stopping:
            run.set_spec(record.spec)
            run.reopen()
            return run
        now_s = record.now_s(context.clocks.now_s(), context.clocks.boot())
        context.retry_store(context.store.reopen, record.id, now_s)
        run = recover_run(context, context.retry_store(context.store.experiment, record.id))
        self._manager.adopt(run)
        return run


def _chosen(run: ExperimentRun, states: frozenset[TrialState], wanted: Sequence[int] | None) -> list[int]:
    return [
        number for number, trial in run.trials.items() if trial.state in states and (wanted is None or number in wanted)
    ]


def _run_again(run: ExperimentRun, numbers: Sequence[int], why: str) -> None:
    for number in numbers:
        run.change_state(number, TrialState.WAITING, f"{why}; {earlier(run.trials[number])}")


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_whole(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_positive(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_Check = Callable[[JsonValue], bool]
_CHANGES: Final[Mapping[str, tuple[_Check, str]]] = MappingProxyType(
    {
        "trials": (_is_count, "a whole number of at least 1"),
        "concurrency": (_is_count, "a whole number of at least 1"),
        "time_s": (_is_positive, "a number of seconds"),
        "failures": (_is_count, "a whole number of at least 1"),
        "priority": (_is_whole, "a whole number"),
        "weight": (_is_positive, "a number above 0"),
    }
)


def _changed(spec: ExperimentSpec, args: JsonObject) -> ExperimentSpec:
    """Return the spec with what a request changes of it.

    Raises:
        AutotrainError: A value is none of its kind.
    """
    budget: dict[str, JsonValue] = {}
    others: dict[str, JsonValue] = {}
    for name, value in args.items():
        check, expected = _CHANGES[name] if name in _CHANGES else (None, f"one of {', '.join(_CHANGES)}")
        if check is None or not check(value):
            raise AutotrainError(f"{name} is {value!r}.", f"Expected: {expected}.", "Correct it.")
        if name in {"time_s", "failures"}:
            budget[name] = value
        else:
            others[name] = value
    return replace(spec, budget=replace(spec.budget, **budget), **others)  # type: ignore[arg-type]  # checked above
