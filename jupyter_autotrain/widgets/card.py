"""The run card: an experiment on one page, as text and as HTML, that reads with no kernel, network or script.

It is what a notebook file keeps of an experiment, so it is bounded whatever the trials print and however many there
are, and it holds no secret and no path of this machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

import numpy as np

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.noted import warned
from jupyter_autotrain.core.ranking import ranked
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.wording import count, cut, duration, number, parameters
from jupyter_autotrain.store import Columns, Store
from jupyter_autotrain.terminal import printable
from jupyter_autotrain.widgets import images, svg

LIMIT_BYTES: Final = 49_000  # a cell may store 50 kB, what surrounds the card included
_PANELS = 3
_CURVES = 24
_ROWS = 10
_FAILED_ROWS = 2
_CAPTURED = 12
_WARNINGS = 3
_POINTS: Final = 1_800
_WIDTH = 720.0
_HEIGHT = 170.0
_COLORS: Final = {"SUCCEEDED": "#1b9e77", "FAILED": "#d1495b", "CANCELLED": "#8a8a8a", "RUNNING": "#3b7dd8"}
_IMAGES: Final = "<!--pictures-->"  # escaping keeps it out of everything else
_PATH = re.compile(r"(?<![\w.…/])~?/(?:[^\s/:'\"<>|]+/)+(?=[^\s/:'\"<>|])")


@dataclass(frozen=True, slots=True)
class Card:
    """The two forms of one run card."""

    text: str
    html: str

    @property
    def size_bytes(self) -> int:
        """The bytes of both forms."""
        return len(self.text.encode()) + len(self.html.encode())


def card(store: Store, record: ExperimentRecord, now_s: float | None = None, home: Home | None = None) -> Card:
    """Draw the run card of an experiment as it stands; at most `LIMIT_BYTES`, both forms together.

    Args:
        store: The store the experiment lies in.
        record: The experiment.
        now_s: The time to count a running experiment's age with; None takes the clock.
        home: The home, where pictures of trials lie; None shows none.
    """
    trials = ranked(record.spec.objective, store.trials(record.id))
    metrics = _metrics(record, store.metric_names(record.id))
    notes = store.notes(record.id)
    pictures = images.newest(notes, [trial.number for trial in trials]) if home else []
    page = _Page(record, trials, record.now_s(time.time(), BootTime.now()) if now_s is None else now_s)
    page = replace(page, warnings=warned(notes, _WARNINGS), pictures=images.summary(pictures, page.name))
    curves = {name: store.series(record.id, name) for name in metrics[:_PANELS]}
    made = Card(printable(page.text()), page.html(curves))
    if made.size_bytes > LIMIT_BYTES:
        made = Card(made.text, page.html({}))
    shown = images.embedded(pictures, home, record.id, LIMIT_BYTES - made.size_bytes) if home else ""
    return Card(made.text, made.html.replace(_IMAGES, shown))


def mime_bundle(experiment: Experiment) -> dict[str, str]:
    """The run card by MIME type."""
    made = card(experiment.store, experiment.record, home=experiment.home)
    return {"text/plain": made.text, "text/html": made.html}


@dataclass(frozen=True, slots=True)
class _Page:
    record: ExperimentRecord
    trials: Sequence[TrialRecord]
    now_s: float
    warnings: Sequence[str] = ()
    pictures: str = ""

    @property
    def name(self) -> str:
        return cut(self.record.label, 80)

    @property
    def objective(self) -> str:
        return cut(self.record.spec.objective.label, 40) if self.record.spec.objective else ""

    def facts(self) -> str:
        ended = sum(trial.state.is_final for trial in self.trials)
        failed = sum(trial.state is TrialState.FAILED for trial in self.trials)
        total = max(self.record.spec.trials, len(self.trials))
        took = duration(self.record.took_s(self.now_s))
        parts = [f"{ended} of {count(total, 'trial')} ended", f"{failed} failed" if failed else ""]
        return " · ".join(part for part in [*parts, took, self.record.spec.backend] if part)

    def best(self) -> str:
        if not self.objective or not self.trials or self.trials[0].value is None:
            return ""
        best = self.trials[0]
        told = f": {_line(best)}" if best.params else ""
        return f"Best {self.objective} {number(best.value)} in trial {best.number} ({best.state}){told}"

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(trial.number),
                trial.state,
                number(trial.value) if self.objective else "",
                _spent(trial, self.now_s),
                _line(trial),
                cut(without_paths(trial.reason), 120),
            )
            for trial in self.shown()
        ]

    def shown(self) -> list[TrialRecord]:
        # The best, and room for failures: why a trial failed is worth more than the tenth best value.
        failed = [trial for trial in self.trials[_ROWS - _FAILED_ROWS :] if trial.state is TrialState.FAILED]
        kept = failed[:_FAILED_ROWS]
        return [*self.trials[: _ROWS - len(kept)], *kept]

    def heads(self) -> tuple[str, ...]:
        return ("trial", "state", self.objective, "time", "parameters", "reason")

    def more(self) -> str:
        left = len(self.trials) - _ROWS
        return f"and {count(left, 'more trial')}" if left > 0 else ""

    def again(self) -> str:
        return f"%autotrain show {self.name}"

    def text(self) -> str:
        lines = [f"{self.name}  {self.record.state}  {self.facts()}", self.best(), cut(self._reason(), 200), ""]
        rows = self.rows()
        if rows:
            columns = [i for i, head in enumerate(self.heads()) if head and any(row[i] for row in rows)]
            table = [tuple(row[i] for i in columns) for row in [self.heads(), *rows]]
            widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
            lines += ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        lines += [self.more(), *self._warnings(), self.pictures, f"Show it live: {self.again()}"]
        return "\n".join(line for i, line in enumerate(lines) if line or i == 3)

    def html(self, curves: Mapping[str, Mapping[int, Columns]]) -> str:
        color = _COLORS.get(self.record.state, "#8a8a8a")
        badge = f'<span style="color:{color};font-weight:600">● {self.record.state}</span>'
        parts = [
            f'<p style="margin:4px 0"><b>{escape(self.name)}</b>&ensp;{badge}&ensp;{escape(self.facts())}</p>',
            _paragraph(self.best()),
            _paragraph(cut(self._reason(), 200)),
            self._picture(curves),
            self._table(),
            *map(_paragraph, self._warnings()),
            f"{_IMAGES}{_paragraph(self.pictures)}" if self.pictures else "",
            _captured(self.record.spec.bundle),
            f'<p style="margin:4px 0;opacity:.7">Show it live: <code>{escape(self.again())}</code></p>',
        ]
        return f'<div style="font:13px system-ui,sans-serif;max-width:720px">{"".join(parts)}</div>'

    def _warnings(self) -> list[str]:
        return [cut(without_paths(text), 200) for text in self.warnings]

    def _reason(self) -> str:
        return without_paths(self.record.reason)

    def _picture(self, curves: Mapping[str, Mapping[int, Columns]]) -> str:
        if not curves:
            return ""
        order = [trial.number for trial in self.trials]
        width = _WIDTH / min(max(len(curves), 2), _PANELS)
        budget = _POINTS // len(curves)
        panels = [
            svg.chart(name, _drawn(series, order, budget), i * width, width, _HEIGHT)
            for i, (name, series) in enumerate(curves.items())
        ]
        label = f"Curves of {', '.join(cut(name, 40) for name in curves)} of {len(order)} trials. {self.best()}"
        return svg.document(panels, width * len(curves), _HEIGHT, label)

    def _table(self) -> str:
        rows = self.rows()
        if not rows:
            return ""
        # Reasons are sentences: below the table they leave its rows one line high.
        heads = self.heads()[:-1]
        columns = [i for i, head in enumerate(heads) if head and any(row[i] for row in rows)]
        cell = 'style="text-align:left;padding:2px 10px 2px 0"'
        head = "".join(f'<th scope="col" {cell}>{escape(heads[i])}</th>' for i in columns)
        body = "".join(f"<tr>{''.join(f'<td {cell}>{escape(row[i])}</td>' for i in columns)}</tr>" for row in rows)
        reasons = [_paragraph(f"Trial {row[0]} {row[1].lower()}: {row[-1]}") for row in rows if row[-1]]
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        style = "border-collapse:collapse;font:inherit;color:inherit"
        return f'<table style="{style}">{table}</table>{_paragraph(self.more())}{"".join(reasons)}'


def without_paths(text: str) -> str:
    """The text with each path that has folders cut to its last part."""
    return _PATH.sub("…/", text)


def _metrics(record: ExperimentRecord, names: Sequence[str]) -> list[str]:
    first = record.spec.objective.metric if record.spec.objective else None
    return sorted(names, key=lambda name: name != first)


def _drawn(series: Mapping[int, Columns], order: Sequence[int], budget: int) -> list[svg.Curve]:
    numbers = [number for number in order if number in series][:_CURVES]
    buckets = max(budget // max(len(numbers), 1) // 2, 8)
    curves = []
    for rank, trial in enumerate(numbers):
        steps, values = series[trial]
        columns = np.frombuffer(steps, dtype=np.int64).astype(np.float64), np.frombuffer(values, dtype=np.float64)
        kept_steps, kept_values = svg.decimate(*columns, buckets)
        curves.append(_styled(svg.Curve(kept_steps, kept_values, label=str(trial)), trial, rank, len(numbers)))
    # The best lies on top.
    return curves[::-1]


def _styled(curve: svg.Curve, trial: int, rank: int, total: int) -> svg.Curve:
    look = replace(curve, color=svg.color_of(trial), dash=svg.dash_of(trial))
    if rank == 0:
        return replace(look, width=2.25)
    return replace(look, width=1.25, opacity=0.9 if total <= len(svg.PALETTE) else 0.45)


def _captured(bundle: Bundle) -> str:
    shown = [name for name in bundle.captured if name.how not in {"builtin", "parameter", "skipped"}]
    if not shown:
        return ""
    items = [f"<code>{escape(cut(name.name, 40))}</code> ({escape(name.how)})" for name in shown[:_CAPTURED]]
    more = f" and {len(shown) - _CAPTURED} more" if len(shown) > _CAPTURED else ""
    differs = "".join(_paragraph(cut(line, 200)) for line in bundle.differences)
    return (
        f"<details><summary>Captured {count(len(shown), 'name')}</summary>{', '.join(items)}{more}{differs}</details>"
    )


def _spent(trial: TrialRecord, now_s: float) -> str:
    return "" if trial.started_s is None else duration((trial.ended_s or now_s) - trial.started_s)


def _line(trial: TrialRecord) -> str:
    return cut(parameters(trial.params), 80)


def _paragraph(text: str) -> str:
    return f'<p style="margin:4px 0">{escape(text)}</p>' if text else ""
