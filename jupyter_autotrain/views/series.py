"""Series of metrics: as float64 columns for a live view, thinned out for a picture or a list.

`curves_json` is one metric of many trials as curves of a bounded number of points, with steps and times, as a server
sends them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.store import Columns, MetricChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.store import Store, TimedColumns, TrialValue

Floats: TypeAlias = "NDArray[np.float64]"
SeriesKey: TypeAlias = tuple[str, int, int]  # metric, trial, attempt
_LEAST_ROWS = 16  # of a curve in a picture


@dataclass(slots=True)
class SeriesBlock:
    """Consecutive rows of one series, from row `first` on; each column is float64 in pieces."""

    first: int
    rows: int = 0
    steps: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)


def blocks(pieces: Iterable[MetricChunk], rows: dict[SeriesKey, int]) -> dict[SeriesKey, SeriesBlock]:
    """Return the pieces joined by series.

    `rows` counts the rows of each series so far and is brought up to date.
    """
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    found: dict[SeriesKey, SeriesBlock] = {}
    for piece in pieces:
        key = (piece.name, piece.number, piece.attempt)
        block = found.setdefault(key, SeriesBlock(rows.get(key, 0)))
        steps, values = piece.columns
        block.steps.append(np.frombuffer(steps, dtype=np.int64).astype(np.float64).tobytes())
        block.values.append(values.tobytes())
        block.times.append(piece.times.tobytes())
        block.rows += len(steps)
        rows[key] = block.first + block.rows
    return found


def objective_first(spec: ExperimentSpec, metrics: Iterable[str]) -> list[str]:
    """Return the metrics in the order of the charts: that of the objective before the others."""
    first = spec.objective.metric if spec.objective else None
    return sorted(metrics, key=lambda name: name != first)


def sampled(
    series: Mapping[int, Columns], trials: Sequence[int], most: int, most_points: int
) -> list[tuple[int, Floats, Floats]]:
    """Return trial, steps and values of the first trials that have a series, `most` of them; `most_points` in all."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    chosen = [trial for trial in trials if trial in series][:most]
    most_rows = max(most_points // max(len(chosen), 1), _LEAST_ROWS)
    curves = []
    for trial in chosen:
        steps = np.frombuffer(series[trial][0], dtype=np.int64)
        values = np.frombuffer(series[trial][1], dtype=np.float64)
        rows = kept_rows(values, most_rows)
        curves.append((trial, steps[rows].astype(np.float64), values[rows]))
    return curves


def with_nulls(values: Floats) -> list[float | None]:
    """Return the values for JSON, which has no NaN: null is a gap."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def kept_rows(values: Floats, most: int) -> NDArray[np.intp]:
    """Return the rows of at most `most` values that look like all of them, in order; `most` is at least 4.

    Both ends stay, and the least and the greatest value of equal stretches. Of values that are no number, which every
    view draws as a gap, one stays for each gap.
    """
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    is_gap = ~np.isfinite(values)
    if not is_gap.any():
        rows = np.arange(len(values))
    else:
        goes_on = is_gap & np.append(False, is_gap[:-1])
        goes_on[-1:] = False  # an axis reaches to the end of a curve, whatever it holds there
        rows = np.flatnonzero(~goes_on)
    return rows if len(rows) <= most else rows[_thinned(values[rows], most)]


def _thinned(values: Floats, most: int) -> NDArray[np.intp]:
    """Return the rows of both ends, and of extremes and a gap of each stretch; all at once, for long lists."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    is_gap = ~np.isfinite(values)
    kinds = [is_gap] if most > 4 and is_gap.any() else []  # four: both ends and both extremes
    buckets = max((most - 2) // (2 + len(kinds)), 1)
    rows = len(values)
    width = -(-rows // buckets)
    firsts = np.arange(-(-rows // width)) * width
    least = np.where(is_gap, np.inf, values)
    greatest = np.where(is_gap, -np.inf, values)
    picks = [[0], [rows - 1]]
    for score in (-least, greatest, *kinds):
        filled = np.append(score, np.full(width * len(firsts) - rows, score.min())).reshape(-1, width)
        picks.append(firsts + filled.argmax(axis=1))
    return np.unique(np.minimum(np.concatenate(picks), rows - 1)).astype(np.intp)


_LEAST_POINTS: Final = 4  # of a curve: both ends, the least and the greatest value
SPARKLINE_POINTS: Final = 40


def curves_json(
    store: Store, experiment_id: str, metric: str, trials: Collection[int] | None, max_points: int
) -> JsonObject:
    """Return the curves of a metric, `max_points` in all at most.

    The extremes that are seen at that width stay.

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
    numbers = store.trials_with(experiment_id, metric)
    if trials is not None:
        numbers = [number for number in numbers if number in trials]
    most = max_points // _LEAST_POINTS
    series = store.timed_series(experiment_id, metric, numbers[:most])
    most_each = max_points // max(len(series), 1)
    curves = [_curve(trial, pieces, most_each) for trial, pieces in series.items() if pieces]
    return {"metric": metric, "curves": curves, "left_out": numbers[most:]}


def _curve(trial: int, pieces: Sequence[TimedColumns], most: int) -> JsonObject:
    steps, times_s, columns = zip(*pieces, strict=True)
    values = _joined(columns)
    kept = kept_rows(values, most)
    return {
        "trial": trial,
        "points": len(values),
        "steps": _picked([column.cast("q") for column in steps], kept),
        "values": [*with_nulls(values[kept])],
        "times_s": _picked([column.cast("d") for column in times_s], kept),
    }


def _joined(columns: Sequence[memoryview]) -> Floats:
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    return np.frombuffer(b"".join(columns), dtype=np.float64)


def _picked(columns: Sequence[Sequence[float]], kept: NDArray[np.intp]) -> list[JsonValue]:
    """Return the picked rows of columns that follow each other, and read only these."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    lengths = [*map(len, columns)]
    ends = np.cumsum(lengths)
    pieces = np.searchsorted(ends, kept, side="right")
    begins = ends - lengths
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
