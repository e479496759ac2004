"""Series of metrics: as float64 columns for a live view, thinned out for a picture."""

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
    """Return trial, steps and values of the trials that have a series, in their order; about `most_points` in all."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    chosen = [trial for trial in trials if trial in series]
    most = max(most_points // max(len(chosen), 1), _LEAST_ROWS)
    curves = []
    for trial in chosen:
        steps = np.frombuffer(series[trial][0], dtype=np.int64)
        values = np.frombuffer(series[trial][1], dtype=np.float64)
        rows = kept_rows(values, most)
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
