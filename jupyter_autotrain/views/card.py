"""The run card: an experiment on one page, as text and as HTML, that reads with no kernel, network or script.

It is what a notebook file keeps of an experiment, so it is bounded whatever the trials print and however many there
are, and it holds no secret and no path of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import compress
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.core.text_format import count, cut
from jupyter_autotrain.store import Columns, Store
from jupyter_autotrain.views import svg, trial_pictures
from jupyter_autotrain.views.card_content import CardContent
from jupyter_autotrain.views.json_objects import LIMIT_BYTES as RUN_LIMIT_BYTES
from jupyter_autotrain.views.json_objects import MIME_TYPE, run_json
from jupyter_autotrain.views.series import objective_first, sampled

IMAGES: Final = "<!--pictures-->"  # where pictures of trials go; escaping keeps it out of everything else
_PANELS_WIDE: Final = 3
_CURVES: Final = 24
_CAPTURED: Final = 12
_POINTS: Final = 1_800
_WIDTH: Final = 720.0
_HEIGHT: Final = 170.0
_GREY: Final = "#8a8a8a"
_COLORS: Final = {"SUCCEEDED": "#1b9e77", "FAILED": "#d1495b", "CANCELLED": _GREY, "RUNNING": "#3b7dd8"}

LIMIT_BYTES: Final = 49_000  # a cell may store 50 kB, what surrounds the card included
_PANELS: Final = 3
_WARNINGS: Final = 3


@dataclass(frozen=True, slots=True)
class Card:
    """The forms of one run card; `run` is what front ends draw that know its type (`run_json`)."""

    text: str
    html: str
    run: JsonObject = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """The bytes of all forms."""
        run_bytes = len(json.dumps(self.run).encode()) if self.run else 0
        return len(self.text.encode()) + len(self.html.encode()) + run_bytes

    def mime_bundle(self) -> dict[str, JsonValue]:
        """Return the forms by MIME type."""
        bundle: dict[str, JsonValue] = {"text/plain": self.text, "text/html": self.html}
        if self.run:
            bundle[MIME_TYPE] = self.run
        return bundle


def card(store: Store, record: ExperimentRecord, now_s: float | None = None, home: Home | None = None) -> Card:
    """Draw the run card of an experiment as it is now; at most `LIMIT_BYTES`, all forms together.

    Args:
        store: The store the experiment lies in.
        record: The experiment.
        now_s: The time to count a running experiment's age with; None takes the clock.
        home: The home, where pictures of trials lie; None shows none.
    """
    trials = ranked(record.spec.objective, store.trials(record.id))
    notes = store.notes(record.id)
    content = CardContent(
        record,
        trials,
        record.now_s(time.time(), BootTime.now()) if now_s is None else now_s,
        [*(f"{node}." for node in store.unreachable_nodes(record.id)), *summarize_warnings(notes, _WARNINGS)],
    )
    pictures = trial_pictures.newest(notes, content.order) if home else []
    content = replace(content, pictures=pictures)
    metrics = objective_first(record.spec, store.metric_names(record.id))[:_PANELS]
    curves = {name: store.series(record.id, name) for name in metrics}
    made = Card(printable(content.text()), html(content, curves))
    if made.size_bytes > LIMIT_BYTES:
        made = Card(made.text, html(content, {}))
    made = replace(made, run=run_json(content, curves, min(RUN_LIMIT_BYTES, LIMIT_BYTES - made.size_bytes)))
    shown = trial_pictures.embedded(pictures, home, record.id, LIMIT_BYTES - made.size_bytes) if home else ""
    return replace(made, html=made.html.replace(IMAGES, shown))


def mime_bundle(experiment: Experiment) -> dict[str, JsonValue]:
    """Return the run card by MIME type."""
    return card(experiment.store, experiment.record, home=experiment.home).mime_bundle()


def html(content: CardContent, curves: Mapping[str, Mapping[int, Columns]]) -> str:
    """Return the card as HTML, with a panel for each metric in `curves`."""
    color = _COLORS.get(content.record.state, _GREY)
    badge = f'<b style="font-weight:600"><span style="color:{color}">●</span> {content.record.state}</b>'
    parts = [
        f'<p style="margin:4px 0"><b>{escape(content.name)}</b>&ensp;{badge}&ensp;{escape(content.progress())}</p>',
        _paragraph(content.best()),
        _paragraph(content.reason),
        _chart(content, curves) if curves else "",
        _table(content),
        *map(_paragraph, content.data),
        *map(_paragraph, content.warnings),
        f"{IMAGES}{_paragraph(content.pictures_text)}" if content.pictures else "",
        _captured(content.record.spec.bundle),
        f'<p style="margin:4px 0;opacity:.7">Show it live: <code>{escape(content.show_command)}</code></p>',
    ]
    return f'<div style="font:13px system-ui,sans-serif;max-width:720px">{"".join(parts)}</div>'


def _chart(content: CardContent, curves: Mapping[str, Mapping[int, Columns]]) -> str:
    order = content.order
    width = _WIDTH / min(max(len(curves), 2), _PANELS_WIDE)
    budget = _POINTS // len(curves)
    panels: list[str] = []
    for name, series in curves.items():
        panels.append(svg.chart(name, plot_curves(series, order, budget), len(panels) * width, width, _HEIGHT))
    names = ", ".join(cut(name, 40) for name in curves)
    label = f"Curves of {names} of {len(order)} trials. {content.best()}"
    return svg.document(panels, width * len(curves), _HEIGHT, label)


def plot_curves(series: Mapping[int, Columns], order: Sequence[int], most_points: int) -> list[svg.PlotCurve]:
    """Return the curves of the first 24 trials of `order`, with the first one on top."""
    shown = sampled(series, order, _CURVES, most_points)
    curves = []
    for rank, (trial, steps, values) in enumerate(shown):
        curve = svg.PlotCurve(steps, values, svg.color_of(trial), dash=svg.dash_of(trial), label=str(trial))
        curves.append(_weighted(curve, rank, len(shown)))
    # The best lies on top.
    return curves[::-1]


def _weighted(curve: svg.PlotCurve, rank: int, total: int) -> svg.PlotCurve:
    if rank == 0:
        return replace(curve, width=2.25)
    return replace(curve, width=1.25, opacity=0.9 if total <= len(svg.PALETTE) else 0.45)


def _table(content: CardContent) -> str:
    rows = content.rows()
    if not rows:
        return ""
    # Reasons are sentences: below the table they leave its rows one line high.
    heads = content.heads()[:-1]
    *columns, _ = zip(*rows, strict=True)
    is_shown = [bool(head) and any(texts) for head, texts in zip(heads, columns, strict=True)]
    head = _table_row('th scope="col"', compress(heads, is_shown))
    body = ""
    reasons = ""
    for number, state, *texts, reason in rows:
        body += _table_row("td", compress((number, state, *texts), is_shown))
        reasons += _paragraph(f"Trial {number} {state.lower()}: {reason}") if reason else ""
    style = "border-collapse:collapse;font:inherit;color:inherit"
    table = f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'
    return f"{table}{_paragraph(content.trials_left_out)}{reasons}"


def _table_row(tag: str, texts: Iterable[str]) -> str:
    end = tag.partition(" ")[0]
    cells = [f'<{tag} style="text-align:left;padding:2px 10px 2px 0">{escape(text)}</{end}>' for text in texts]
    return f"<tr>{''.join(cells)}</tr>"


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


def _paragraph(text: str) -> str:
    return f'<p style="margin:4px 0">{escape(text)}</p>' if text else ""
