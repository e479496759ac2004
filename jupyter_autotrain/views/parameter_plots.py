"""Plots of an objective against parameters: one by one, and over two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.objective import Objective, ranked
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count, number, parameter
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.views import plots, svg
from jupyter_autotrain.views.axes import Axis, Panel, axis, value_on

_CELLS: Final = 28  # of a contour plot, in each direction
_NEAR: Final = 1e-4  # squared, of a plot's width
HEIGHTS: Final = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")


def slices(experiment: Experiment, names: Sequence[str], metric: str | None) -> plots.Plot:
    """Plot an objective against parameters, one panel for each."""
    objective = experiment.objective_of(metric)
    values = finite(experiment.objective_values(objective))
    chosen = names or tuple(experiment.record.spec.search)
    width = plots.WIDTH / min(max(len(chosen), 2), plots.PER_ROW)
    parts: list[str] = []
    for place, name in enumerate(chosen):
        across = places(experiment, name)
        pairs = [(across[trial], value) for trial, value in values.items() if trial in across]
        axes = axis_of(experiment, name, [pair[0] for pair in pairs]), axis(objective.label, [*values.values()] or [0])
        row, column = divmod(place, plots.PER_ROW)
        panel = Panel(*axes, column * width, row * plots.HEIGHT, width, plots.HEIGHT)
        parts += [panel.frame(), *(panel.dot(*pair, svg.PALETTE[0]) for pair in pairs)]
    height = math.ceil(len(chosen) / plots.PER_ROW) * plots.HEIGHT
    title = f"{objective.label} of {count(len(values), 'trial')} against {', '.join(chosen)}"
    picture = svg.document(parts, width * min(len(chosen), plots.PER_ROW), height, title)
    return plots.Plot(title, picture, trial_rows(experiment, chosen, objective, values))


def contour(experiment: Experiment, x: str, y: str, metric: str | None) -> plots.Plot:
    """Plot an objective over two parameters, interpolated between the trials by their inverse squared distance."""
    objective = experiment.objective_of(metric)
    values = finite(experiment.objective_values(objective))
    across = places(experiment, x)
    down = places(experiment, y)
    trials = [trial for trial in values if trial in across and trial in down]
    x_axis = axis_of(experiment, x, [across[one] for one in trials])
    y_axis = axis_of(experiment, y, [down[one] for one in trials])
    panel = Panel(x_axis, y_axis, 0, 0, plots.WIDTH - 90, plots.HEIGHT + 60)
    chosen = {one: values[one] for one in trials}
    known: list[tuple[float, float, float]] = []
    dots: list[str] = []
    for one, value in chosen.items():
        known.append((x_axis.share(across[one]), y_axis.share(down[one]), value))
        dots += [panel.dot(across[one], down[one], "#fff", 3.2, 0.9), panel.dot(across[one], down[one], "#000", 1.8, 1)]
    low = min(chosen.values(), default=0.0)
    high = max(chosen.values(), default=0.0)
    parts = [*_cells(panel, known, low, high), panel.frame(), *dots, *_scale(low, high)]
    title = f"{objective.label} over {x} and {y}, from {count(len(trials), 'trial')}"
    picture = svg.document(parts, plots.WIDTH, plots.HEIGHT + 60, title)
    return plots.Plot(title, picture, trial_rows(experiment, (x, y), objective, chosen))


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
    left = plots.WIDTH - 80
    height = 20
    parts = []
    for level, color in enumerate(HEIGHTS):
        top = 24 + (len(HEIGHTS) - 1 - level) * height
        value = low + (level + 0.5) / len(HEIGHTS) * (high - low)
        parts.append(f'<rect x="{left:g}" y="{top}" width="14" height="{height}" fill="{color}"/>')
        parts.append(f'<text x="{left + 20:g}" y="{top + 14}">{number(value)}</text>')
    return parts


def finite(values: dict[int, float]) -> dict[int, float]:
    """Return the values that are numbers."""
    return {trial: value for trial, value in values.items() if math.isfinite(value)}


def places(experiment: Experiment, name: str) -> dict[int, float]:
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


def axis_of(experiment: Experiment, name: str, values: Sequence[float]) -> Axis:
    """Return the axis of a parameter, on which all values lie."""
    return axis(name, values or [1.0], experiment.record.spec.search[name])


def trial_rows(experiment: Experiment, names: Sequence[str], objective: Objective, values: dict[int, float]) -> Table:
    """Return the trials that have a value, the best first, with some of their parameters."""
    trials = [trial for trial in ranked(objective, experiment.store.trials(experiment.id)) if trial.number in values]
    rows = []
    for trial in trials[: plots.ROWS]:
        params = [parameter(trial.params.get(name, "")) for name in names]
        rows.append([str(trial.number), *params, number(values[trial.number])])
    return plots.bounded_table(["trial", *names, objective.label], rows, len(trials))
