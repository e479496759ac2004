"""Why trials do not run, in sentences for every view: refused, waiting, or on nodes that do not answer.

Why a trial is not running: the manager's own reasons, one sentence each. The manager, which decides, stores what
blocks each trial; this only reads. So the answer is never a guess made somewhere else, and it stays after the manager
has ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord, UnreachableNode
from jupyter_autotrain.core.text_format import clock_time
from jupyter_autotrain.manager.attempts import Attempt, Silence
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.start import status, stopped_by_signal
from jupyter_autotrain.store import Store

_BAD = frozenset({TrialState.FAILED, TrialState.LOST, TrialState.PREEMPTED})
_MOST_WARNINGS = 10
_MOST_NUMBERS = 5
_STEP = re.compile(r"; its last report was of step \S+| after step \S+")  # may differ among trials that fail alike
_NO_MANAGER = "The manager is not running. The next command that needs it starts it; nothing is lost."


def explain(store: Store, home: Home, experiment: ExperimentRecord | str) -> list[str]:
    """Say what each trial waits for, why the bad ones failed, and what trials warned of; nothing for the others.

    Args:
        store: The store.
        home: The home.
        experiment: The experiment, or a name for it.

    Raises:
        UnknownExperimentError: When no experiment has that name.
    """
    record = store.find(experiment) if isinstance(experiment, str) else store.experiment(experiment.id)
    trials = store.trials(record.id)
    known = store.block_reasons(record.id)
    failures = _failures(store, record, trials)
    failures += [f"{node}." for node in store.unreachable_nodes(record.id)]
    active = [trial for trial in trials if not trial.state.is_final]
    if not record.state.is_final:
        failures = [*filter(None, [stopped_by_signal(home)]), *failures]
        if not status(home).alive:
            return [*failures, *_once((trial.number, known.get(trial.number, "")) for trial in active), _NO_MANAGER]
    warnings = summarize_warnings(store.notes(record.id), _MOST_WARNINGS)
    waits = _once((trial.number, _wait(trial, known)) for trial in active)
    waits += _placements(store, record, active)
    ended = [f"{record.reason[0].upper()}{record.reason[1:]}."] if record.reason else []
    return [*failures, *warnings, *waits, *_not_created(record, trials), *ended]


def _failures(store: Store, record: ExperimentRecord, trials: list[TrialRecord]) -> list[str]:
    bad = [trial for trial in trials if trial.state in _BAD]
    # The reason of a cell that raised has its step; that of a killed one has not.
    lacks_step = any(" after step " not in trial.reason for trial in bad)
    steps = store.last_steps(record.id) if lacks_step else {}
    return _once((trial.number, _failure(trial, steps.get((trial.number, trial.attempt)))) for trial in bad)


def _failure(trial: TrialRecord, step: int | None) -> str:
    reason = (trial.reason or "for no known reason").rstrip(".").removeprefix("Lost: ")
    after = "" if step is None or " after step " in reason else f"; its last report was of step {step}"
    return f"{trial.state.lower()}: {reason}{after}"


def _once(told: Iterable[tuple[int, str]]) -> list[str]:
    """Return a sentence for each text that is told of trials, about the first of them; the others are named.

    A trial with an empty text is passed over.
    """
    groups: dict[str, list[tuple[int, str]]] = {}
    for number, text in told:
        if text:
            groups.setdefault(_STEP.sub("", text), []).append((number, text))
    return list(map(_sentence, groups.values()))


def _sentence(same: Sequence[tuple[int, str]]) -> str:
    number, text = same[0]
    sentence = f"Trial {number} {text}."
    others = [str(other) for other, _ in same[1:]]
    if not others:
        return sentence
    more = len(others) - _MOST_NUMBERS
    shown = others if more <= 0 else [*others[:_MOST_NUMBERS], f"{more} more"]
    named = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"{sentence} Likewise {'trial' if len(others) == 1 else 'trials'} {named}."


def _placements(store: Store, record: ExperimentRecord, active: list[TrialRecord]) -> list[str]:
    """Why each trial of an experiment with several backends is where it is."""
    if len(record.spec.backends) < 2:
        return []
    changes = store.state_changes(record.id)
    reasons = {change.number: change.reason for change in changes if change.state is TrialState.PREPARING}
    placed = [trial for trial in active if trial.placement.backend and reasons.get(trial.number)]
    return _once((trial.number, f"was put on {reasons[trial.number]}") for trial in placed)


def _wait(trial: TrialRecord, known: Mapping[int, str]) -> str:
    default = "is about to start" if trial.state is TrialState.WAITING else ""
    return known.get(trial.number) or default


def _not_created(record: ExperimentRecord, trials: list[TrialRecord]) -> list[str]:
    left = record.spec.trials - len(trials)
    active = [str(t.number) for t in trials if not t.state.is_final]
    if record.closed or left <= 0:
        return []
    if not active:
        return [f"{left} of {record.spec.trials} trials are about to be created."]
    if len(active) < record.spec.concurrency:
        return [
            f"{left} of {record.spec.trials} trials are not created yet: their generation begins when "
            f"{', '.join(active)} of the one before have ended."
        ]
    return [
        f"{left} of {record.spec.trials} trials are not created yet: the slots (`concurrency:`) are taken by "
        f"trial {', '.join(active)}; each end frees a place for one."
    ]


def find(run: ExperimentRun, backends: Mapping[str, str], now_s: float) -> list[UnreachableNode]:
    """Return the nodes with trials of an experiment that do not answer, by name.

    Args:
        run: The experiment.
        backends: Why a backend as a whole does not answer, by its name.
        now_s: The wall clock, for those that are new.
    """
    trials = Counter[str]()
    for attempt in run.attempts.values():
        trials.update(silent_nodes(attempt, backends))
    since_s = {node.name: node.since_s for node in run.published.nodes}
    return [UnreachableNode(name, since_s.get(name, now_s), trials[name]) for name in sorted(trials)]


def block_reasons(run: ExperimentRun, backends: Mapping[str, str], nodes: Sequence[UnreachableNode]) -> dict[int, str]:
    """Return of each trial on such a node: the rest of a sentence that begins with the trial."""
    since = {node.name: clock_time(node.since_s) for node in nodes}
    reasons: dict[int, str] = {}
    for number, attempt in run.attempts.items():
        if silence := _silence(attempt, backends):
            reasons[number] = _unreachable_sentence(attempt, silence, since)
    return reasons


def _unreachable_sentence(attempt: Attempt, silence: Silence, since: Mapping[str, str]) -> str:
    names = node_names(attempt)
    silent = silence.nodes or names
    cause = "" if "not answer" in silence.reason else f": {silence.reason}"
    if len(names) == 1:
        return f"is on {names[0]}, which does not answer since {since[names[0]]}{cause}"
    told = ", ".join(f"{name} does not answer since {since[name]}" for name in silent)
    rest = ", ".join(name for name in names if name not in silent)
    held = f"; until then {rest} stays taken (`lost_after` of the place limits that)" if rest else ""
    return f"is on {', '.join(names)}; {told}{cause}{held}"


def _silence(attempt: Attempt, backends: Mapping[str, str]) -> Silence | None:
    if reason := backends.get(attempt.placement.backend):
        return Silence(reason)
    return attempt.unreachable or attempt.uncancelled


def silent_nodes(attempt: Attempt, backends: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of an attempt that do not answer."""
    silence = _silence(attempt, backends)
    return () if silence is None else silence.nodes or node_names(attempt)


def starting_reasons(run: ExperimentRun, before_s: float) -> dict[int, str]:
    """Get of each trial that its backend was given before a tick and does not confirm to have: a sentence as above."""
    reasons: dict[int, str] = {}
    for number, attempt in run.attempts.items():
        if attempt.is_being_started and attempt.submitted_s < before_s:
            reasons[number] = f"is being started on {', '.join(node_names(attempt))}"
    return reasons


def node_names(attempt: Attempt) -> tuple[str, ...]:
    """Return the nodes that an attempt is on; its backend where they are not known."""
    return tuple(placed.node for placed in attempt.placement.nodes) or (attempt.placement.backend,)
