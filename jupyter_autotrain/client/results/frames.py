"""The results of an experiment as tables: a row per trial, a column per trial, mean and spread of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.client.experiment_files import ExperimentFiles
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.text_format import closest_match, parameter
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Columns

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


_SPREAD: Final = ("mean", "std", "count")


class ExperimentFrames(ExperimentFiles):
    """Reads what the trials of one experiment have reported, as a whole."""

    def objective_of(self, metric: str | None = None) -> Objective:
        """Return the objective of this metric, the one that ranks trials without a name.

        Raises:
            AutotrainError: It has no such objective.
        """
        found = self.record.spec.objectives
        for one in found:
            if metric is None or one.metric == metric:
                return one
        raise AutotrainError(
            f"{self.name} has no objective {metric!r}." if metric else f"{self.name} has no objective.",
            f"Its objectives: {', '.join(one.metric for one in found) or 'none'}.",
            "Name one of them." if found else "Add a header line such as: objective: maximize val_acc",
        )

    def objective_values(self, objective: Objective) -> dict[int, float]:
        """Return the value of an objective of each trial that has one, by number."""
        found: dict[int, float] = {}
        for number, (_, reported) in self.store.series(self.id, objective.metric).items():
            value = objective.value(reported)
            if value is not None:
                found[number] = value
        return found

    def trials_frame(self, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()) -> pd.DataFrame:
        """Return a row per trial; `.to_csv(...)` or `.to_parquet(...)` writes it.

        The columns are state, value (of the objective), a `value_METRIC` for each further objective, a `params_NAME`
        for each parameter, a `last_METRIC` for each metric's last value, then attempt, started, ended (UTC), took_s,
        backend and reason.

        Args:
            by: Parameters; with them a row per group of trials that are equal in these: the mean of the values, their
                sample deviation (std), count, min and max.
            over: Parameters such as a seed, the only ones in which the trials of a group differ: instead of `by`.

        Raises:
            AutotrainError: pandas is not installed, or a parameter is not known.
        """
        pandas = _pandas()
        trials = self.store.trials(self.id)
        if by or over:
            return self._grouped(self.groups(by, over), {trial.number: trial.value for trial in trials})
        rows: list[dict[str, object]] = [
            {"number": trial.number, "state": str(trial.state), "value": trial.value} for trial in trials
        ]
        for objective in self.record.spec.objectives[1:]:
            _fill(rows, f"value_{objective.metric}", self.objective_values(objective))
        names = dict.fromkeys(name for trial in trials for name in trial.params)
        for name in names:
            _fill(rows, f"params_{name}", {trial.number: plain(trial.params.get(name)) for trial in trials})
        for name in self.store.metric_names(self.id):
            curves = self.store.series(self.id, name)
            _fill(rows, f"last_{name}", {number: values[-1] for number, (_, values) in curves.items()})
        for row, trial in zip(rows, trials, strict=True):
            row |= {"attempt": trial.attempt, "started": _time(trial.started_s), "ended": _time(trial.ended_s)}
            row |= {"took_s": trial.took_s(), "backend": trial.backend, "reason": trial.reason}
        frame = pandas.DataFrame(rows, columns=None if rows else ["number", "state", "value"])
        return frame.set_index("number")

    def _grouped(self, groups: Groups, values: Mapping[int, float | None]) -> pd.DataFrame:
        pandas = _pandas()
        rows = []
        for key, numbers in groups.members.items():
            found = pandas.Series([values[number] for number in numbers], dtype=float)
            rows.append(dict(zip(groups.names, key, strict=True)) | found.agg([*_SPREAD, "min", "max"]).to_dict())
        frame = pandas.DataFrame(rows)
        return frame.set_index(list(groups.names)).sort_index() if groups.names else frame

    def metrics_frame(
        self, metric: str, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return the curves of a metric: a row per step, a column per trial; NaN where a trial has no value.

        Args:
            metric: Its name.
            by: As that of `trials_frame`: the columns are the groups, each with its count, mean and std.
            over: As that of `trials_frame`.

        Raises:
            AutotrainError: pandas is not installed; the metric was not reported, or a parameter is not known.
        """
        pandas = _pandas()
        curves = self.curves(metric)
        if not by and not over:
            columns = {number: pandas.Series(values, index=steps) for number, (steps, values) in curves.items()}
            whole = {number: one[~one.index.duplicated(keep="last")] for number, one in columns.items()}
            return pandas.DataFrame(whole).sort_index().rename_axis(index="step", columns="trial")
        groups = self.groups(by, over)
        parts: dict[object, pd.DataFrame] = {}
        for key, (steps, rows) in self.spreads(metric, groups).items():
            frame = pandas.DataFrame(rows.T, index=steps, columns=[*_SPREAD])
            parts[key or ("all",)] = frame.sort_index(axis=1)  # pandas wants its columns in order
        names = [*(groups.names or ["trials"]), "statistic"]
        joined = pandas.concat(parts, axis=1, names=names).sort_index().rename_axis(index="step")
        with suppress(TypeError):  # values of several types have no order
            return joined.sort_index(axis=1)
        return joined

    def spreads(self, metric: str, groups: Groups) -> dict[tuple[Value, ...], Spread]:
        """Return the mean curve of a metric and its spread in each group that has reported it; see `groups.spread`.

        Raises:
            AutotrainError: No trial has reported it.
        """
        curves = self.curves(metric)
        found: dict[tuple[Value, ...], Spread] = {}
        for key, numbers in groups.members.items():
            chosen = [curves[number] for number in numbers if number in curves]
            if chosen:
                found[key] = spread(chosen)
        return found

    def curves(self, metric: str) -> dict[int, Columns]:
        """Return the curve of a metric of each trial that has reported it, by number: its steps and values.

        Raises:
            AutotrainError: No trial has reported it.
        """
        found = self.store.series(self.id, metric)
        if not found:
            raise AutotrainError(
                f"{self.name} has no metric {metric!r}.",
                f"Reported is: {', '.join(sorted(self.store.metric_names(self.id))) or 'nothing so far'}.",
                "Name one of these.",
            )
        return found

    def groups(self, by: str | Sequence[str] = (), over: str | Sequence[str] = ()) -> Groups:
        """Return the trials that are equal in the parameters `by`, or in all others than `over`.

        Raises:
            AutotrainError: A parameter is not known.
        """
        return group({trial.number: trial.params for trial in self.store.trials(self.id)}, by, over)


def _pandas() -> Any:  # noqa: ANN401 - the module, which has no types where it is not installed
    try:
        import pandas  # noqa: PLC0415 - slow, and not everybody has it
    except ImportError:
        raise AutotrainError(
            "A frame is a pandas.DataFrame, and pandas is not installed.",
            "experiment.trials and experiment.series(name) need nothing more.",
            "Install it: pip install pandas",
        ) from None
    return pandas


def _fill(rows: Sequence[dict[str, object]], column: str, values: Mapping[int, object]) -> None:
    for row in rows:
        row[column] = values.get(row["number"])  # type: ignore[call-overload] # a number, set above


def _time(epoch_s: float | None) -> datetime | None:
    return None if epoch_s is None else datetime.fromtimestamp(epoch_s, UTC)


# Trials in groups


Value: TypeAlias = str | int | float | bool | None
Spread: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float64]]"


@dataclass(frozen=True, slots=True)
class Groups:
    """Trials by their values of some parameters.

    Attributes:
        names: The parameters.
        members: The numbers of the trials by these values, in the order of `names`.
    """

    names: Sequence[str]
    members: dict[tuple[Value, ...], list[int]] = field(default_factory=dict)

    def label(self, key: Sequence[Value]) -> str:
        """Return a group as text: `width=32 depth=2`."""
        return " ".join(f"{name}={parameter(value)}" for name, value in zip(self.names, key, strict=True))


def group(
    params: Mapping[int, Mapping[str, JsonValue]], by: str | Sequence[str] = (), over: str | Sequence[str] = ()
) -> Groups:
    """Return the trials in groups; all in one where no parameter is left to tell them apart.

    Args:
        params: The parameters of each trial, by its number.
        by: The parameters that the trials of a group share.
        over: The only ones that they may differ in: instead of `by`.

    Raises:
        AutotrainError: A parameter is not known.
    """
    known = list(dict.fromkeys(chain.from_iterable(params.values())))
    chosen = [by] if isinstance(by, str) else list(by)
    left_out = [over] if isinstance(over, str) else list(over)
    for name in (*chosen, *left_out):
        if name not in known:
            guess = closest_match(name, known)
            raise AutotrainError(
                f"No trial has a parameter {name!r}.",
                f"Did you mean {guess!r}?" if guess else f"Expected one of: {', '.join(known) or 'none'}.",
                "Name parameters of `search:`.",
            )
    names = chosen or [name for name in known if name not in left_out]
    groups = Groups(names)
    for number, one in params.items():
        groups.members.setdefault(tuple(plain(one.get(name)) for name in names), []).append(number)
    return groups


def plain(value: JsonValue) -> Value:
    """Return a parameter as a value that a table holds: an option of a nested choice as text."""
    return value if value is None or isinstance(value, str | int | float) else parameter(value)


def spread(curves: Sequence[Columns]) -> Spread:
    """Return the steps that curves have together, and for each the mean, the sample's deviation and the count.

    A value that is NaN does not count; the deviation of one value is NaN. O(points of all curves, sorted).

    Args:
        curves: At least one.

    Returns:
        Steps of shape (n,), and rows of shape (3, n).
    """
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    all_steps = np.concatenate([np.frombuffer(steps, dtype=np.int64) for steps, _ in curves])
    values = np.concatenate([np.frombuffer(column, dtype=np.float64) for _, column in curves])
    steps, place = np.unique(all_steps, return_inverse=True)
    counts = np.isfinite(values)
    count = np.bincount(place[counts], minlength=len(steps)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(place[counts], values[counts], len(steps)) / count
        squares = np.bincount(place[counts], (values - mean[place])[counts] ** 2, len(steps))
        deviation = np.sqrt(squares / np.where(count > 1, count - 1, np.nan))
    return steps, np.stack([mean, deviation, count])
