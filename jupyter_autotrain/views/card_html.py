"""The run card as HTML: no script, no style sheet, no address; curves are one picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import compress
from typing import Final

from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.core.text_format import count, cut
from jupyter_autotrain.store import Columns
from jupyter_autotrain.views import svg
from jupyter_autotrain.views.card_content import CardContent
from jupyter_autotrain.views.series import sampled

IMAGES: Final = "<!--pictures-->"  # where pictures of trials go; escaping keeps it out of everything else
_PANELS_WIDE: Final = 3
_CURVES: Final = 24
_CAPTURED: Final = 12
_POINTS: Final = 1_800
_WIDTH: Final = 720.0
_HEIGHT: Final = 170.0
_GREY: Final = "#8a8a8a"
_COLORS: Final = {"SUCCEEDED": "#1b9e77", "FAILED": "#d1495b", "CANCELLED": _GREY, "RUNNING": "#3b7dd8"}


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
