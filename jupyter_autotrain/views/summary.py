"""An experiment as text: one line, the table of its trials, or both with the best trial and the warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.records import TrialRecord, placement_labels
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import cut, duration, number, parameter
from jupyter_autotrain.views.best import best_text

_ROWS: Final = 20
_WARNINGS: Final = 5
_WARNING_CHARACTERS: Final = 160


def headline(experiment: Experiment) -> str:
    """Name, state, why it ended before its trials were used up, what was lost, and the best trial."""
    record = experiment.record
    best = experiment.best
    remark = f", {record.remark}" if record.remark else ""
    best_part = f"; best {best_text(record.spec.objective, best)}" if record.spec.objective and best else ""
    return f"{experiment.name}: {record.state}{remark}{best_part}"


def summary(experiment: Experiment) -> str:
    """The headline, the table of trials, and what they warned of."""
    return "\n".join([headline(experiment), trial_table(experiment).text(), *warning_lines(experiment)])


def warning_lines(experiment: Experiment) -> list[str]:
    """What its trials warned of, cut to a line each."""
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
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    value_head = [objective.label] if objective else []
    places = placement_labels(trials)
    heads = ["trial", "state", *names, *value_head, "took", *(["runs on"] if places else []), "reason"]
    rows = [_row(trial, names, places, ranked=objective is not None) for trial in trials]
    left = sum(record.counts.values()) - len(trials)
    more = f"... and {left} more trials (all of them: %autotrain show {experiment.name} --json)" if left > 0 else ""
    return Table(heads, rows, more=more)


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
