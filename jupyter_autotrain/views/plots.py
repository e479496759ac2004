"""Plots of an experiment's results: pictures without scripts, each with the same as a plain table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.objective import Objective, ranked
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.table import INK, Table
from jupyter_autotrain.core.text_format import count, cut, number, parameter, parameters
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import svg
from jupyter_autotrain.views.axes import Axis, Panel, axis, value_on
from jupyter_autotrain.views.card_html import plot_curves

_WIDTH: Final = 720.0
_HEIGHT: Final = 260.0
_PER_ROW: Final = 3
_POINTS: Final = 6_000
_GROUPS: Final = 12
_ROWS: Final = 100
_CELLS: Final = 28  # of a contour plot, in each direction
_BAR: Final = 22.0
_NEAR: Final = 1e-4  # squared, of a plot's width
HEIGHTS: Final = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
_BLUE, _ORANGE = svg.PALETTE[:2]


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of results.

    Attributes:
        title: One line.
        picture: An HTML image.
        table: The same as rows.
    """

    title: str
    picture: str
    table: Table

    def html(self) -> str:
        """Return the picture, with the table folded below it."""
        rows = f"<details><summary>As a table</summary>{self.table.html()}</details>"
        return f"<figure><figcaption>{escape(self.title)}</figcaption>{self.picture}{rows}</figure>"

    def _repr_html_(self) -> str:
        return f'<div style="font:13px system-ui,sans-serif;max-width:720px">{self.html()}</div>'

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table.text()}"


def curves(
    experiment: Experiment, metric: str, *, by: str | Sequence[str] = (), over: str | Sequence[str] = ()
) -> Plot:
    """Plot a metric by step: of the best trials, or of groups their mean and deviation."""
    series = experiment.curves(metric)
    if by or over:
        return _group_curves(experiment, metric, by, over)
    order = [trial.number for trial in ranked(experiment.record.spec.objective, experiment.store.trials(experiment.id))]
    rows = []
    for trial in [one for one in order if one in series][:_ROWS]:
        steps, values = series[trial]
        finite = [value for value in values if math.isfinite(value)] or [math.nan]
        row = (trial, len(values), steps[-1], number(values[-1]), number(min(finite)), number(max(finite)))
        rows.append([*map(str, row)])
    table = _table(["trial", "values", "last step", "last", "least", "greatest"], rows, len(series))
    title = f"{metric} of {count(len(series), 'trial')}"
    return Plot(title, _line_picture(metric, plot_curves(series, order, _POINTS), title), table)


def _group_curves(experiment: Experiment, metric: str, by: str | Sequence[str], over: str | Sequence[str]) -> Plot:
    groups = experiment.groups(by, over)
    lines: list[svg.PlotCurve] = []
    rows = []
    for place, (key, (steps, (mean, deviation, trials))) in enumerate(experiment.spreads(metric, groups).items(), 1):
        label = groups.label(key) or "all trials"
        last = f"{number(float(mean[-1]))} ± {number(float(deviation[-1]))}"
        rows.append([label, str(int(trials.max())), str(int(steps[-1])), last])
        middle = svg.PlotCurve(steps.astype(float), mean, svg.color_of(place), 2.25, label=label)
        edge = replace(middle, width=1.0, dash="3 3", opacity=0.8)
        lines += [replace(edge, values=mean - deviation), replace(edge, values=mean + deviation), middle]
    title = f"{metric} of {count(len(rows), 'group')} of trials: mean, and dashed one standard deviation"
    shown = lines[: 3 * _GROUPS]
    table = _table(["group", "trials", "last step", "last mean ± deviation"], rows, len(rows))
    return Plot(title, _line_picture(metric, shown, title, shown[2::3]), table)


def _line_picture(metric: str, lines: Sequence[svg.PlotCurve], label: str, named: Sequence[svg.PlotCurve] = ()) -> str:
    """Return lines as a picture, with the names of some of them below."""
    parts = [svg.chart(metric, lines, 0, _WIDTH, _HEIGHT)]
    for place, line in enumerate(named):
        row, column = divmod(place, _PER_ROW)
        x = 46 + column * 225
        y = _HEIGHT + 14 + row * 16
        parts.append(f'<path d="M{x} {y - 4}h16" stroke="{line.color}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 22}" y="{y}">{escape(cut(line.label, 32))}</text>')
    rows = math.ceil(len(named) / _PER_ROW)
    return svg.document(parts, _WIDTH, _HEIGHT + 16 * rows + 6, label)


def importances(experiment: Experiment, metric: str | None, evaluator: str) -> Plot:
    """Plot how much each parameter matters."""
    found = experiment.importances(metric, evaluator)
    most = max(found.values(), default=1.0) or 1.0
    parts = []
    for place, (name, value) in enumerate(found.items()):
        y = 8 + place * _BAR
        width = value / most * (_WIDTH - 250)
        parts.append(
            f'<text x="150" y="{y + 14:g}" text-anchor="end">{escape(cut(name, 24))}</text>'
            f'<rect x="158" y="{y + 2:g}" width="{width:.1f}" height="{_BAR - 6:g}" fill="{_BLUE}"/>'
            f'<text x="{164 + width:.1f}" y="{y + 14:g}">{value:.2f}</text>'
        )
    title = f"Importance of parameters for {experiment.objective_of(metric).metric} ({evaluator})"
    rows = [[name, f"{value:.4f}"] for name, value in found.items()]
    picture = svg.document(parts, _WIDTH, 16 + len(found) * _BAR, title)
    return Plot(title, picture, Table(["parameter", "importance"], rows))


def pareto(experiment: Experiment, x: str | None, y: str | None) -> Plot:
    """Plot two objectives of all trials, with the Pareto front."""
    objectives = experiment.record.spec.objectives
    if len(objectives) < 2:
        raise AutotrainError(
            f"{experiment.name} has {count(len(objectives), 'objective')}.",
            "A Pareto front is that of several.",
            "Add them to the header: objective: [maximize val_acc, minimize latency_ms]",
        )
    across = experiment.objective_of(x or objectives[0].metric)
    down = experiment.objective_of(y or objectives[1].metric)
    found = [experiment.objective_values(one) for one in (across, down)]
    both = {trial: (value, found[1][trial]) for trial, value in found[0].items() if trial in found[1]}
    front = experiment.pareto_front()
    best = sorted(both[trial.number] for trial in front if trial.number in both)
    title = f"{count(len(front), 'trial')} on the Pareto front, of {len(both)}"
    panel = Panel(_values_axis(across, both, 0), _values_axis(down, both, 1), 0, 0, _WIDTH, _HEIGHT)
    line = _polyline([panel.point(*pair) for pair in best])
    dots = [panel.dot(*pair, INK) for pair in both.values()] + [panel.dot(*pair, _ORANGE, 4.5, 1) for pair in best]
    parts = [panel.frame(), line, *dots]
    columns = [experiment.objective_values(one) for one in objectives]
    rows = [_front_row(trial, columns) for trial in front]
    table = _table(["trial", *(one.label for one in objectives), "parameters"], rows, len(rows))
    return Plot(title, svg.document(parts, _WIDTH, _HEIGHT, title), table)


def _polyline(points: Sequence[tuple[float, float]]) -> str:
    places = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
    return f'<polyline fill="none" stroke="{_ORANGE}" stroke-width="1.5" points="{places}"/>'


def _front_row(trial: TrialRecord, columns: Sequence[dict[int, float]]) -> list[str]:
    values = [number(column[trial.number]) for column in columns]
    return [str(trial.number), *values, cut(parameters(trial.params), 100)]


def _values_axis(objective: Objective, pairs: dict[int, tuple[float, float]], place: int) -> Axis:
    return axis(f"{objective.label} ({objective.direction})", [pair[place] for pair in pairs.values()] or [0.0])


def slices(experiment: Experiment, names: Sequence[str], metric: str | None) -> Plot:
    """Plot an objective against parameters, one panel for each."""
    objective = experiment.objective_of(metric)
    values = _finite(experiment.objective_values(objective))
    chosen = names or tuple(experiment.record.spec.search)
    width = _WIDTH / min(max(len(chosen), 2), _PER_ROW)
    parts: list[str] = []
    for place, name in enumerate(chosen):
        across = _parameter(experiment, name)
        pairs = [(across[trial], value) for trial, value in values.items() if trial in across]
        axes = _axis_of(experiment, name, [pair[0] for pair in pairs]), axis(objective.label, [*values.values()] or [0])
        row, column = divmod(place, _PER_ROW)
        panel = Panel(*axes, column * width, row * _HEIGHT, width, _HEIGHT)
        parts += [panel.frame(), *(panel.dot(*pair, _BLUE) for pair in pairs)]
    height = math.ceil(len(chosen) / _PER_ROW) * _HEIGHT
    title = f"{objective.label} of {count(len(values), 'trial')} against {', '.join(chosen)}"
    picture = svg.document(parts, width * min(len(chosen), _PER_ROW), height, title)
    return Plot(title, picture, _trial_rows(experiment, chosen, objective, values))


def contour(experiment: Experiment, x: str, y: str, metric: str | None) -> Plot:
    """Plot an objective over two parameters, interpolated between the trials by their inverse squared distance."""
    objective = experiment.objective_of(metric)
    values = _finite(experiment.objective_values(objective))
    across = _parameter(experiment, x)
    down = _parameter(experiment, y)
    trials = [trial for trial in values if trial in across and trial in down]
    x_axis = _axis_of(experiment, x, [across[one] for one in trials])
    y_axis = _axis_of(experiment, y, [down[one] for one in trials])
    panel = Panel(x_axis, y_axis, 0, 0, _WIDTH - 90, _HEIGHT + 60)
    known = [(x_axis.share(across[one]), y_axis.share(down[one]), values[one]) for one in trials]
    heights = [values[one] for one in trials] or [0.0]
    low = min(heights)
    high = max(heights)
    dots = [panel.dot(across[one], down[one], "#fff", 3.2, 0.9) for one in trials]
    dots += [panel.dot(across[one], down[one], "#000", 1.8, 1) for one in trials]
    parts = [*_cells(panel, known, low, high), panel.frame(), *dots, *_scale(low, high)]
    title = f"{objective.label} over {x} and {y}, from {count(len(trials), 'trial')}"
    chosen = {one: values[one] for one in trials}
    picture = svg.document(parts, _WIDTH, _HEIGHT + 60, title)
    return Plot(title, picture, _trial_rows(experiment, (x, y), objective, chosen))


def _cells(panel: Panel, known: Sequence[tuple[float, float, float]], low: float, high: float) -> list[str]:
    """Return coloured rectangles that show the height of each part of a panel."""
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    if not known:
        return []
    px, py, heights = np.array(known).T
    centre = (np.arange(_CELLS) + 0.5) / _CELLS
    near = 1 / ((centre[:, None, None] - py) ** 2 + (centre[None, :, None] - px) ** 2 + _NEAR)
    surface = (near * heights).sum(2) / near.sum(2)
    levels = np.clip((surface - low) / ((high - low) or 1) * len(HEIGHTS), 0, len(HEIGHTS) - 1).astype(int)
    parts = []
    for row in range(_CELLS):
        edges = [0, *(np.flatnonzero(np.diff(levels[row])) + 1).tolist(), _CELLS]
        for first, last in pairwise(edges):
            left, bottom = panel.place(first / _CELLS, row / _CELLS)
            right, top = panel.place(last / _CELLS, (row + 1) / _CELLS)
            color = HEIGHTS[levels[row, first]]
            size = f'width="{right - left + 0.4:.1f}" height="{bottom - top + 0.4:.1f}"'
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{color}"/>')
    return parts


def _scale(low: float, high: float) -> list[str]:
    """Return the colours with their heights, beside a contour plot."""
    left = _WIDTH - 80
    height = 20
    parts = []
    for level, color in enumerate(HEIGHTS):
        top = 24 + (len(HEIGHTS) - 1 - level) * height
        value = low + (level + 0.5) / len(HEIGHTS) * (high - low)
        parts.append(f'<rect x="{left:g}" y="{top}" width="14" height="{height}" fill="{color}"/>')
        parts.append(f'<text x="{left + 20:g}" y="{top + 14}">{number(value)}</text>')
    return parts


def _finite(values: dict[int, float]) -> dict[int, float]:
    return {trial: value for trial, value in values.items() if math.isfinite(value)}


def _parameter(experiment: Experiment, name: str) -> dict[int, float]:
    """Return where each trial lies on the axis of a parameter."""
    space = experiment.record.spec.search
    if name not in space:
        raise AutotrainError(
            f"{experiment.name} searches no parameter {name!r}.",
            f"Expected one of: {', '.join(space) or 'none'}.",
            "Name parameters of `search:`.",
        )
    found = {}
    for trial in experiment.store.trials(experiment.id):
        place = value_on(space[name], trial.params.get(name))
        if place is not None:
            found[trial.number] = place
    return found


def _axis_of(experiment: Experiment, name: str, values: Sequence[float]) -> Axis:
    return axis(name, values or [1.0], experiment.record.spec.search[name])


def _trial_rows(experiment: Experiment, names: Sequence[str], objective: Objective, values: dict[int, float]) -> Table:
    trials = [trial for trial in ranked(objective, experiment.store.trials(experiment.id)) if trial.number in values]
    rows = []
    for trial in trials[:_ROWS]:
        params = [parameter(trial.params.get(name, "")) for name in names]
        rows.append([str(trial.number), *params, number(values[trial.number])])
    return _table(["trial", *names, objective.label], rows, len(trials))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Table:
    more = f"and {total - len(rows[:_ROWS])} more" if total > _ROWS else ""
    return Table(heads, rows[:_ROWS], more=more)
