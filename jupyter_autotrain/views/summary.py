"""An experiment in words: one line, the table of its trials, its best trial and how views name it, the time left.

Which trial is the best, `core.objective` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord, placement_labels
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import cut, duration, number, parameter
from jupyter_autotrain.store import TrialTimes

_ROWS: Final = 20
_WARNINGS: Final = 5
_WARNING_CHARACTERS: Final = 160


def headline(experiment: Experiment) -> str:
    """Return name, state, the reason of an early end, what was lost, and the best trial."""
    record = experiment.record
    best = experiment.best
    remark = f", {record.remark}" if record.remark else ""
    best_part = f"; best {best_text(record.spec.objective, best)}" if record.spec.objective and best else ""
    return f"{experiment.name}: {record.state}{remark}{best_part}"


def summary(experiment: Experiment) -> str:
    """Return the headline, the table of trials, and their warnings."""
    return "\n".join([headline(experiment), trial_table(experiment).text(), *warning_lines(experiment)])


def warning_lines(experiment: Experiment) -> list[str]:
    """Return the warnings of its trials, cut to a line each."""
    return [cut(text, _WARNING_CHARACTERS) for text in experiment.warnings(most=_WARNINGS)]


def trial_table(experiment: Experiment) -> Table:
    """Return the trials of an experiment: number, state, parameters, objective, time, place if several, reason.

    Of more than 20 trials the first ones, and the best wherever it is.
    """
    record = experiment.record
    objective = record.spec.objective
    trials = experiment.store.trials(experiment.id, limit=_ROWS)
    best = experiment.best
    if best is not None and best.number not in {trial.number for trial in trials}:
        trials[-1] = best
    names = parameter_names(trials)
    value_head = [objective.label] if objective else []
    places = placement_labels(trials)
    heads = ["trial", "state", *names, *value_head, "took", *(["runs on"] if places else []), "reason"]
    rows = [_row(trial, names, places, ranked=objective is not None) for trial in trials]
    left = sum(record.counts.values()) - len(trials)
    more = f"... and {left} more trials (all of them: %autotrain show {experiment.name} --json)" if left > 0 else ""
    return Table(heads, rows, more=more)


def parameter_names(trials: Iterable[TrialRecord]) -> list[str]:
    """Return the names of the parameters of trials, each once, as they come."""
    return list(dict.fromkeys(chain.from_iterable(trial.params for trial in trials)))


def _row(trial: TrialRecord, names: Sequence[str], places: Mapping[int, str], *, ranked: bool) -> list[str]:
    took_s = trial.took_s()
    value = [number(trial.value)] if ranked else []
    return [
        str(trial.number),
        f"{trial.state} (attempt {trial.attempt})" if trial.attempt > 1 else str(trial.state),
        *(cut(parameter(trial.params.get(name, "")), 40) for name in names),
        *value,
        "-" if took_s is None else duration(took_s),
        *([cut(places.get(trial.number, ""), 40)] if places else []),
        cut(trial.reason.splitlines()[0], 80) if trial.reason else "",
    ]


_LABEL_CHARACTERS = 40


def best_text(objective: Objective, best: TrialRecord) -> str:
    """Return the best trial's value, number and state: `val_acc (last) 0.94 in trial 3 (SUCCEEDED)`."""
    label = cut(objective.label, _LABEL_CHARACTERS)
    return f"{label} {number(best.value)} in trial {best.number} ({best.state})"


def value_text(trial: TrialRecord) -> str:
    """Return the value of a trial, with its state unless it has succeeded."""
    state = "" if trial.state is TrialState.SUCCEEDED else f" ({trial.state})"
    return f"{number(trial.value)}{state}"


_LEAST_MEAN_S: Final = 1e-3
_MOST_DONE: Final = 0.95  # of a running trial, however old it is


def eta_s(record: ExperimentRecord, trials: Sequence[TrialRecord | TrialTimes], now_s: float) -> float | None:
    """Return the seconds until the end, if trials continue as they did.

    It is None before the first has ended, and at the end.

    A running trial counts with its elapsed share, measured by the mean duration of those that ended well. After a
    retry of an ended experiment only what has happened since counts.
    """
    missing = max(record.spec.trials - len(trials), 0)
    trials = [trial for trial in trials if trial.ended_s is None or trial.ended_s >= record.begun_s]
    spans = [*_spans_s(trials)]
    if not spans or record.state.is_final:
        return None
    begun = [trial.started_s for trial in trials if trial.started_s is not None]
    mean_s = max(sum(spans) / len(spans), _LEAST_MEAN_S)
    done = sum(_share_done(trial, now_s, mean_s) for trial in trials)
    total = missing + len(trials)
    return max(now_s - min(begun), 0.0) * max(total - done, 0.0) / done


def _spans_s(trials: Iterable[TrialRecord | TrialTimes]) -> Iterator[float]:
    """Yield how long each trial took that ended well."""
    for trial in trials:
        if trial.started_s is not None and trial.ended_s is not None and trial.state is not TrialState.FAILED:
            yield trial.ended_s - trial.started_s


def _share_done(trial: TrialRecord | TrialTimes, now_s: float, mean_s: float) -> float:
    if trial.state.is_final:
        return 1.0
    return 0.0 if trial.started_s is None else min(max(now_s - trial.started_s, 0.0) / mean_s, _MOST_DONE)
