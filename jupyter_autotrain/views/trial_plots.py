"""Plots of whole trials: their parameters and value on parallel axes, and what they use of their nodes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, TypeGuard

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.table import INK, Table
from jupyter_autotrain.core.text_format import count, cut, duration, number
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import parameter_plots, plots, svg
from jupyter_autotrain.views.axes import Axis, axis

_LINES: Final = 1_000
_BETWEEN: Final = 84.0  # two axes, in pixels
_TOP: Final = 30.0
_BOTTOM: Final = 14.0
_SIDE: Final = 60.0
_TRIALS: Final = 8  # whose use is shown, unless others are named
_GIGABYTE: Final = 1e9
_USES: Final = (
    ("CPU (%)", "cpu_percent", 1.0),
    ("memory (GB)", "memory_bytes", _GIGABYTE),
    ("GPU (%)", "gpu_percent", 1.0),
    ("GPU memory (GB)", "gpu_memory_bytes", _GIGABYTE),
)
_PANEL_HEIGHT: Final = 150.0


def parallel(experiment: Experiment, names: Sequence[str], metric: str | None) -> plots.Plot:
    """Plot each trial as a line over an axis for each parameter and one for the objective, which colours it."""
    objective = experiment.objective_of(metric)
    values = parameter_plots.finite(experiment.objective_values(objective))
    chosen = names or tuple(experiment.record.spec.search)
    columns: list[tuple[Axis, dict[int, float]]] = []
    for name in chosen:
        places = parameter_plots.places(experiment, name)
        columns.append((parameter_plots.axis_of(experiment, name, [*places.values()]), places))
    columns.append((axis(objective.label, [*values.values()] or [0.0]), values))
    between = max(_BETWEEN, (plots.WIDTH - 2 * _SIDE) / len(chosen)) if chosen else _BETWEEN
    order = [one.number for one in ranked(objective, experiment.store.trials(experiment.id)) if one.number in values]
    parts = [_trial_line(trial, columns, between, trial == order[0]) for trial in reversed(order[:_LINES])]
    for place, (one, _) in enumerate(columns):
        parts.append(_upright(one, _SIDE + place * between, between))
    more = f", the best {_LINES} drawn" if len(order) > _LINES else ""
    title = f"{objective.label} and parameters of {count(len(order), 'trial')}{more}"
    picture = svg.document(parts, 2 * _SIDE + between * len(chosen), plots.HEIGHT, title)
    return plots.Plot(title, picture, parameter_plots.trial_rows(experiment, chosen, objective, values))


def _down(share: float) -> float:
    return plots.HEIGHT - _BOTTOM - share * (plots.HEIGHT - _TOP - _BOTTOM)


def _upright(one: Axis, x: float, between: float) -> str:
    name = escape(cut(one.label, int(between / 7)))
    parts = [
        f'<path d="M{x:.1f} {_TOP:g}V{plots.HEIGHT - _BOTTOM:g}" stroke="{INK}"/>'
        f'<text x="{x:.1f}" y="14" text-anchor="middle" font-weight="600">{name}</text>'
    ]
    for share, text in one.marks():
        parts.append(f'<text x="{x - 4:.1f}" y="{_down(share) + 3.5:.1f}" text-anchor="end">{escape(text)}</text>')
    return "".join(parts)


def _trial_line(trial: int, columns: Sequence[tuple[Axis, dict[int, float]]], between: float, is_best: bool) -> str:
    """Return the line of a trial, which passes over the axes of parameters that it does not have."""
    points = []
    share = 0.0
    for place, (one, places) in enumerate(columns):
        if trial in places:
            share = one.share(places[trial])
            points.append(f"{_SIDE + place * between:.0f},{_down(share):.1f}")
    heights = parameter_plots.HEIGHTS
    color = heights[min(int(share * len(heights)), len(heights) - 1)]
    look = 'stroke-width="3"' if is_best else 'stroke-width="1.2" opacity=".6"'
    return f'<polyline fill="none" stroke="{color}" {look} points="{" ".join(points)}"/>'


def usage(experiment: Experiment, trials: Sequence[int] = ()) -> plots.Plot:
    """Plot what trials use of their nodes over time: CPU, memory and GPUs; attempts follow each other.

    Args:
        experiment: The experiment.
        trials: Their numbers; without any the best of those that have been watched.

    Raises:
        AutotrainError: None of them has been watched, as one that ends within a second.
    """
    found = [*_watched(experiment, trials)]
    if not found:
        raise AutotrainError(
            f"{experiment.name} knows nothing of what its trials use.",
            "Trials that run for more than a second are watched.",
            "Look again later.",
        )
    parts: list[str] = []
    for metric, name, unit in _USES:
        lines: list[svg.PlotCurve] = []
        for trial, attempts in found:
            lines += _lines(trial.number, attempts, name, unit)
        if lines:
            drawn = svg.chart(metric, lines, 0, plots.WIDTH, _PANEL_HEIGHT, "{} s")
            parts.append(f'<g transform="translate(0 {len(parts) * _PANEL_HEIGHT:g})">{drawn}</g>')
    numbers = ", ".join(str(trial.number) for trial, _ in found)
    title = f"Use of the nodes by {'trial' if len(found) == 1 else 'trials'} {numbers}"
    rows = [_usage_row(trial, attempts) for trial, attempts in found]
    heads = ["trial", "watched"]
    for metric, _, _ in _USES:
        heads += [f"{metric} mean", "most"]
    return plots.Plot(title, svg.document(parts, plots.WIDTH, len(parts) * _PANEL_HEIGHT, title), Table(heads, rows))


def _watched(experiment: Experiment, wanted: Sequence[int]) -> Iterator[tuple[TrialRecord, list[JsonObject]]]:
    """Yield the trials of which samples are kept, each with those of its attempts."""
    left = len(wanted) or _TRIALS
    for trial in ranked(experiment.record.spec.objective, experiment.store.trials(experiment.id)):
        if left and (trial.number in wanted or not wanted):
            attempts = from_json(list[JsonObject], usage_json(experiment.home, trial)["attempts"])
            if attempts:
                left -= 1
                yield trial, attempts


def _lines(trial: int, attempts: Sequence[JsonObject], name: str, unit: float) -> Iterator[svg.PlotCurve]:
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    before_s = 0.0
    for attempt in attempts:
        seconds = np.array(attempt["seconds"], dtype=float) + before_s
        before_s = float(seconds[-1])
        if attempt[name] is not None:
            values = np.array(attempt[name], dtype=float) / unit
            yield svg.PlotCurve(seconds, values, svg.color_of(trial), 1.5, dash=svg.dash_of(trial))


def _usage_row(trial: TrialRecord, attempts: Sequence[JsonObject]) -> list[str]:
    (*_, last) = _lines(trial.number, attempts, "cpu_percent", 1.0)
    row = [str(trial.number), duration(float(last.steps[-1]))]
    for _, name, unit in _USES:
        values: list[float] = []
        for line in _lines(trial.number, attempts, name, unit):
            values += filter(math.isfinite, line.values.tolist())
        row += [number(sum(values) / len(values)), number(max(values))] if values else ["", ""]
    return row


# Curves of what a trial uses of its node, from the files `usage` of its attempts (`agent.wire`)


_MOST_BYTES: Final = 1 << 20  # five times what a supervisor writes in a year
_COLUMNS: Final = ("seconds", "cpu_percent", "memory_bytes", "gpu_percent", "gpu_memory_bytes")
_GPU_FROM: Final = 3  # the columns that may be null
_MOST: Final = 1 << 62


def usage_json(home: Home, trial: TrialRecord) -> JsonObject:
    """Return CPU, memory and GPUs of a trial over time.

    Returns:
        `attempts`: of each that has samples its `attempt` and columns of one length: `seconds` since it began,
        `cpu_percent` (100 is one CPU), `memory_bytes`, `gpu_percent` (the mean of its GPUs) and `gpu_memory_bytes`;
        a column of the GPUs is null where nothing of them is known. Of a trial on several nodes they are those of the
        first one.
    """
    attempts: list[JsonValue] = []
    for attempt in range(1, trial.attempt + 1):
        rows = list(_rows(home.trial(trial.experiment_id, trial.number, attempt)))
        if rows:
            attempts.append({"attempt": attempt, **_columns(rows)})
    return {"attempts": attempts}


def _columns(rows: list[list[float]]) -> JsonObject:
    columns: dict[str, JsonValue] = {}
    for name, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        columns[name] = None if set(values) == {None} else list(values)
    return columns


def _rows(directory: Path) -> Iterator[list[float]]:
    """Yield the samples of an attempt in order of time.

    One whose supervisor was started again goes on from where it was.
    """
    earlier_s = last_s = 0.0
    for seconds, *others in _samples(directory):
        earlier_s += last_s if seconds < last_s else 0.0
        last_s = seconds
        yield [earlier_s + seconds, *others]


def _samples(directory: Path) -> Iterator[list[float]]:
    """Yield the samples that a supervisor has written.

    A trial can write anything there, which is passed over.
    """
    try:
        data = files.read(directory, wire.USAGE, _MOST_BYTES)
    except OSError:
        return
    for line in data.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            found = files.parse_json(line)
            if _is_sample(found):
                yield found


def _is_sample(found: object) -> TypeGuard[list[float]]:
    if not isinstance(found, list) or len(found) != len(_COLUMNS):
        return False
    is_known = all(map(_is_amount, found[:_GPU_FROM]))
    return is_known and all(value is None or _is_amount(value) for value in found[_GPU_FROM:])


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
