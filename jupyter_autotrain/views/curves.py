"""One metric of many trials as curves of a bounded number of points, with steps and times, as a server sends them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.store import Store, TimedColumns, TrialValue
from jupyter_autotrain.views.series import Floats, kept_rows, with_nulls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_POINTS: Final = 4  # of a curve: both ends, the least and the greatest value
SPARKLINE_POINTS: Final = 40


def curves_json(
    store: Store, experiment_id: str, metric: str, trials: Collection[int] | None, max_points: int
) -> JsonObject:
    """The curves of a metric, `max_points` in all at most; the extremes that are seen at that width stay.

    Args:
        store: The store.
        experiment_id: The experiment.
        metric: The metric.
        trials: The trials wanted; None means all.
        max_points: At least 4. Where the trials are too many for it, the last ones are left out.

    Returns:
        `curves`: by trial its `trial`, `steps`, `values` (null: a gap, NaN was reported), `times_s` (since the epoch)
        and `points` (how many were reported); `left_out`: the trials that got no curve.
    """
    numbers = [number for number in store.trials_with(experiment_id, metric) if trials is None or number in trials]
    most = max_points // _LEAST_POINTS
    series = store.timed_series(experiment_id, metric, numbers[:most])
    most_each = max_points // max(len(series), 1)
    curves = [_curve(trial, pieces, most_each) for trial, pieces in series.items() if pieces]
    return {"metric": metric, "curves": curves, "left_out": numbers[most:]}


def _curve(trial: int, pieces: Sequence[TimedColumns], most: int) -> JsonObject:
    values = _joined([piece[2] for piece in pieces])
    kept = kept_rows(values, most)
    return {
        "trial": trial,
        "points": len(values),
        "steps": _picked([piece[0].cast("q") for piece in pieces], kept),
        "values": [*with_nulls(values[kept])],
        "times_s": _picked([piece[1].cast("d") for piece in pieces], kept),
    }


def _joined(columns: Sequence[memoryview]) -> Floats:
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    return np.concatenate([np.frombuffer(column, dtype=np.float64) for column in columns])


def _picked(columns: Sequence[Sequence[float]], kept: NDArray[np.intp]) -> list[JsonValue]:
    """The rows of columns that follow each other; reads only these."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    ends = np.cumsum([len(column) for column in columns])
    pieces = np.searchsorted(ends, kept, side="right")
    begins = ends - [len(column) for column in columns]
    return [columns[piece][row] for piece, row in zip(pieces, (kept - begins[pieces]).tolist(), strict=True)]


def sparkline(store: Store, record: ExperimentRecord, values: Sequence[TrialValue]) -> list[float | None]:
    """Return a curve of at most 40 points for a list: the values of all trials; of a single one its reports."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    objective = record.spec.objective
    if objective is None:
        return []
    heights = np.array([trial.value for trial in values])
    if len(values) == 1:
        pieces = [*store.timed_series(record.id, objective.metric, [values[0].number]).values()]
        heights = _joined([piece[2] for piece in pieces[0]]) if pieces else heights
    return with_nulls(heights[kept_rows(heights, SPARKLINE_POINTS)])
