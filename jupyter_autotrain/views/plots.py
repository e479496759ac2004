"""Plots of an experiment's results: pictures without scripts, each with the same as a plain table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.objective import Objective, ranked
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.table import INK, Table
from jupyter_autotrain.core.text_format import count, cut, number, parameters
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import svg
from jupyter_autotrain.views.axes import Axis, Panel, axis
from jupyter_autotrain.views.card import plot_curves

WIDTH: Final = 720.0
HEIGHT: Final = 260.0
PER_ROW: Final = 3
_POINTS: Final = 6_000
_GROUPS: Final = 12
ROWS: Final = 100
_BAR: Final = 22.0
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
    for trial in [one for one in order if one in series][:ROWS]:
        steps, values = series[trial]
        finite = list(filter(math.isfinite, values)) or [math.nan]
        row = (trial, len(values), steps[-1], number(values[-1]), number(min(finite)), number(max(finite)))
        rows.append([*map(str, row)])
    table = bounded_table(["trial", "values", "last step", "last", "least", "greatest"], rows, len(series))
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
    table = bounded_table(["group", "trials", "last step", "last mean ± deviation"], rows, len(rows))
    return Plot(title, _line_picture(metric, shown, title, shown[2::3]), table)


def _line_picture(metric: str, lines: Sequence[svg.PlotCurve], label: str, named: Sequence[svg.PlotCurve] = ()) -> str:
    """Return lines as a picture, with the names of some of them below."""
    parts = [svg.chart(metric, lines, 0, WIDTH, HEIGHT)]
    for place, line in enumerate(named):
        row, column = divmod(place, PER_ROW)
        x = 46 + column * 225
        y = HEIGHT + 14 + row * 16
        parts.append(f'<path d="M{x} {y - 4}h16" stroke="{line.color}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 22}" y="{y}">{escape(cut(line.label, 32))}</text>')
    rows = math.ceil(len(named) / PER_ROW)
    return svg.document(parts, WIDTH, HEIGHT + 16 * rows + 6, label)


def importances(experiment: Experiment, metric: str | None, evaluator: str) -> Plot:
    """Plot how much each parameter matters."""
    found = experiment.importances(metric, evaluator)
    most = max(found.values(), default=1.0) or 1.0
    parts = []
    for place, (name, value) in enumerate(found.items()):
        y = 8 + place * _BAR
        width = value / most * (WIDTH - 250)
        parts.append(
            f'<text x="150" y="{y + 14:g}" text-anchor="end">{escape(cut(name, 24))}</text>'
            f'<rect x="158" y="{y + 2:g}" width="{width:.1f}" height="{_BAR - 6:g}" fill="{_BLUE}"/>'
            f'<text x="{164 + width:.1f}" y="{y + 14:g}">{value:.2f}</text>'
        )
    title = f"Importance of parameters for {experiment.objective_of(metric).metric} ({evaluator})"
    rows = [[name, f"{value:.4f}"] for name, value in found.items()]
    picture = svg.document(parts, WIDTH, 16 + len(found) * _BAR, title)
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
    found = list(map(experiment.objective_values, (across, down)))
    both = {trial: (value, found[1][trial]) for trial, value in found[0].items() if trial in found[1]}
    front = experiment.pareto_front()
    best = sorted(both[trial.number] for trial in front if trial.number in both)
    title = f"{count(len(front), 'trial')} on the Pareto front, of {len(both)}"
    panel = Panel(_values_axis(across, both, 0), _values_axis(down, both, 1), 0, 0, WIDTH, HEIGHT)
    line = _polyline([panel.point(*pair) for pair in best])
    dots = [panel.dot(*pair, INK) for pair in both.values()] + [panel.dot(*pair, _ORANGE, 4.5, 1) for pair in best]
    parts = [panel.frame(), line, *dots]
    columns = list(map(experiment.objective_values, objectives))
    rows = [_front_row(trial, columns) for trial in front]
    table = bounded_table(["trial", *(one.label for one in objectives), "parameters"], rows, len(rows))
    return Plot(title, svg.document(parts, WIDTH, HEIGHT, title), table)


def _polyline(points: Sequence[tuple[float, float]]) -> str:
    places = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
    return f'<polyline fill="none" stroke="{_ORANGE}" stroke-width="1.5" points="{places}"/>'


def _front_row(trial: TrialRecord, columns: Sequence[dict[int, float]]) -> list[str]:
    values = [number(column[trial.number]) for column in columns]
    return [str(trial.number), *values, cut(parameters(trial.params), 100)]


def _values_axis(objective: Objective, pairs: dict[int, tuple[float, float]], place: int) -> Axis:
    return axis(f"{objective.label} ({objective.direction})", [pair[place] for pair in pairs.values()] or [0.0])


def bounded_table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Table:
    """Return the first rows as a table, which tells how many of `total` are left out."""
    more = f"and {total - len(rows[:ROWS])} more" if total > ROWS else ""
    return Table(heads, rows[:ROWS], more=more)
