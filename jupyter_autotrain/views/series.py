"""Series of metrics: as float64 columns for a live view, thinned out for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.store import Columns, MetricChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
SeriesKey: TypeAlias = tuple[str, int, int]  # metric, trial, attempt
_LEAST_BUCKETS = 8


@dataclass(slots=True)
class SeriesBlock:
    """Consecutive rows of one series, from row `first` on; each column is float64 in pieces."""

    first: int
    rows: int = 0
    steps: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)


def blocks(pieces: Iterable[MetricChunk], rows: dict[SeriesKey, int]) -> dict[SeriesKey, SeriesBlock]:
    """The pieces joined by series; `rows` counts the rows of each series so far and is brought up to date."""
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
    """The metrics in the order of the charts: that of the objective before the others."""
    first = spec.objective.metric if spec.objective else None
    return sorted(metrics, key=lambda name: name != first)


def sampled(series: Mapping[int, Columns], trials: Sequence[int], most_points: int) -> list[tuple[int, Floats, Floats]]:
    """Trial, steps and values of the trials that have a series, in their order; about `most_points` in all."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    chosen = [trial for trial in trials if trial in series]
    buckets = max(most_points // max(len(chosen), 1) // 2, _LEAST_BUCKETS)
    curves = []
    for trial in chosen:
        steps, values = series[trial]
        columns = np.frombuffer(steps, dtype=np.int64).astype(np.float64), np.frombuffer(values, dtype=np.float64)
        curves.append((trial, *decimate(*columns, buckets)))
    return curves


def decimate(steps: Floats, values: Floats, buckets: int) -> tuple[Floats, Floats]:
    """Keep the least and the greatest value of each of `buckets` equal stretches; both ends stay too.

    Values that are not finite are left out. Nothing is lost that is seen at that width.
    """
    chosen = kept_rows(values, buckets)
    return steps[chosen], values[chosen]


def kept_rows(values: Floats, buckets: int) -> NDArray[np.intp]:
    """The indices of the values that `decimate` keeps, in order; at most 2 * `buckets` + 2."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) <= 2 * buckets:
        return finite
    if len(finite) < len(values):
        values = values[finite]
    return finite[_extremes(values, buckets)]


def _extremes(values: Floats, buckets: int) -> NDArray[np.intp]:
    """The indices of both ends and of the extremes of each bucket, in order; all buckets at once, for long lists."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    rows = len(values)
    width = -(-rows // buckets)
    filled = np.append(values, np.full(buckets * width - rows, values[-1])).reshape(buckets, width)
    firsts = np.arange(buckets) * width
    picks = [0], firsts + filled.argmin(axis=1), firsts + filled.argmax(axis=1), [rows - 1]
    return np.unique(np.minimum(np.concatenate(picks), rows - 1)).astype(np.intp)
