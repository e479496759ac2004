"""A plan as one static page: no script, no network, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import prod
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.table import INK, svg_image
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.formatting import colour, html_table, label, ms, proof
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.text_report import HEADS, comparison_rows, rank_rows
from jupyter_autotrain.parallel.plan.timeline import Activity, TimeSegment, timeline

WIDTH: Final = 720
LEFT: Final = 70
MOST_ROWS: Final = 8
MOST_DEVICES: Final = 128
MOST_NODES: Final = 60
# Seen on white and on black.
COLOURS: Final = MappingProxyType(
    {
        "data": "#3b82c4",
        "sequence": "#8b6fc4",
        "tensor": "#d0743a",
        "expert": "#2c9a68",
        "spatial": "#b0902a",
        "mixed": "#b0508a",
        "replica": "#8b949e",
        "forward": "#3b82c4",
        "backward": "#2c5f9e",
        "communication": "#d0743a",
        "optimizer": "#2c9a68",
    }
)
HELD: Final = (
    ("parameter_bytes", "parameters", "data"),
    ("gradient_bytes", "gradients", "tensor"),
    ("optimizer_bytes", "optimizer", "expert"),
    ("activation_bytes", "activations", "sequence"),
)


def timeline_chart(segments: Sequence[TimeSegment], step_s: float, stages: int) -> str:
    """One step: a row per stage."""
    shown = min(stages, MOST_ROWS)
    body = []
    for segment in segments:
        if segment.stage < shown and segment.what is not Activity.BUBBLE:
            x = LEFT + segment.start_s / step_s * WIDTH
            width = (segment.stop_s - segment.start_s) / step_s * WIDTH
            body.append(_rect((x, segment.stage * 22, max(width, 0.3), 18), str(segment.what)))
    names = [_text(0, i * 22 + 13, f"stage {i}") for i in range(shown)]
    more = [_text(0, shown * 22 + 13, f"and {stages - shown} more stages")] if stages > shown else []
    keys = _legend([(str(w), str(w)) for w in Activity if w is not Activity.BUBBLE], (shown + len(more)) * 22 + 14)
    end = _text(LEFT + WIDTH - 60, (shown + len(more)) * 22 + 14, ms(step_s))
    return _svg(LEFT + WIDTH, (shown + len(more)) * 22 + 22, [*body, *names, *more, *keys, end], "One step over time")


def memory_chart(rows: Sequence[dict[str, JsonValue]]) -> str:
    """Return a bar per stage against the limit."""
    body = []
    shown = rows[:MOST_ROWS]
    most = max(max(_number(row, "limit_bytes"), _number(row, "peak_bytes")) for row in rows)
    for i, row in enumerate(shown):
        x = float(LEFT)
        for key, _, colour_ in HELD:
            width = _number(row, key) / most * (WIDTH - 150)
            body.append(_rect((x, i * 22, width, 18), colour_))
            x += width
        limit = LEFT + _number(row, "limit_bytes") / most * (WIDTH - 150)
        body.append(f'<path d="M{limit:.1f} {i * 22 - 1}v20" stroke="{INK}" stroke-width="2"/>')
        body.append(_text(0, i * 22 + 13, f"stage {row['stage']}"))
        label_ = f"{format_memory(_number(row, 'peak_bytes'))} of {format_memory(_number(row, 'limit_bytes'))}"
        body.append(_text(LEFT + WIDTH - 140, i * 22 + 13, label_))
    keys = _legend([(name, colour_) for _, name, colour_ in HELD], len(shown) * 22 + 14)
    return _svg(LEFT + WIDTH, len(shown) * 22 + 22, [*body, *keys], "Memory per rank against the limit")


def mesh_chart(plan: PlanData) -> str:
    """Devices of one stage with their coordinates: the last axis runs along a row."""
    shape = plan.mesh.shape or (1,)
    columns = shape[-1] if len(shape) > 1 or shape[-1] <= 16 else 16
    count = min(prod(shape), MOST_DEVICES)
    size = min(46, WIDTH // columns - 4)
    body = []
    for device in range(count):
        x = device % columns * (size + 4)
        y = device // columns * 26
        body.append(
            f'<rect x="{x}" y="{y}" width="{size}" height="22" rx="3" fill="none" stroke="{INK}" stroke-opacity=".5"/>'
            + _text(x + 5, y + 15, str(device))
        )
    height = (count + columns - 1) // columns * 26
    rest = f" (first {count} of {prod(shape)})" if count < prod(shape) else ""
    names = f"{plan.mesh}{rest}; the last axis runs along a row" + (
        f"; {len(plan.stages)} stages of this" if len(plan.stages) > 1 else ""
    )
    return _svg(LEFT + WIDTH, height + 20, [*body, _text(0, height + 14, names)], "Devices of one stage")


def graph_chart(costs: DecisionCosts) -> str:
    """Ops from top to bottom, coloured by what they are split along; repeated blocks indented under their count."""
    body: list[str] = []
    y = 0
    group = -1
    folded = costs.folded
    for node in folded.nodes[:MOST_NODES]:
        if node.group != group:
            group = node.group
            if group >= 0:
                y += 18
                body.append(_text(0, y - 4, f"{folded.groups[group].label} x {folded.groups[group].count}"))
        body += _line(costs, folded.first_op(node), (12 if group >= 0 else 0, y))
        y += 16
    if len(folded.nodes) > MOST_NODES:
        body.append(_text(0, y + 10, f"and {len(folded.nodes) - MOST_NODES} more ops"))
        y += 16
    keys = _legend([(c, c) for c in ("data", "sequence", "tensor", "expert", "spatial", "mixed", "replica")], y + 14)
    return _svg(LEFT + WIDTH, y + 22, [*body, *keys], "The model, op by op")


def _line(costs: DecisionCosts, op: Op, at: tuple[int, int]) -> Iterator[str]:
    """One op: its colour, its name, what each axis splits."""
    split = [loop.role if loop else None for loop in costs.op_decision(op).split_loops(op)]
    axes = costs.decision.mesh.unique_axes()
    yield _rect((*at, 10, 12), colour(split))
    yield _text(at[0] + 16, at[1] + 10, label(op))
    yield _text(300, at[1] + 10, ", ".join(f"{a}: {role or 'whole'}" for a, role in zip(axes, split, strict=True)))


def _legend(entries: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    x = float(LEFT)
    for name, colour_ in entries:
        yield _rect((x, y - 9, 9, 9), colour_) + _text(x + 13, y, name)
        x += 26 + 7 * len(name)


def _number(row: dict[str, JsonValue], key: str) -> float:
    value = row[key]
    assert isinstance(value, int | float)
    return float(value)


def _rect(box: tuple[float, float, float, float], name: str) -> str:
    x, y, width, height = (f"{value:.1f}".removesuffix(".0") for value in box)
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{COLOURS[name]}"/>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def _svg(width: int, height: float, body: Sequence[str], title: str) -> str:
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="{INK}">{"".join(body)}</svg>'
    )
    return svg_image(picture, title, width)


MOST_BYTES = 50_000

_STYLE = """
.at-plan{--ink:#1f2328;--soft:#656d76;--line:#d0d7de;--paper:#fff;color:var(--ink);background:var(--paper);
font:13px/1.45 system-ui,sans-serif;padding:8px;max-width:960px}
@media (prefers-color-scheme:dark){.at-plan{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--paper:#0d1117}}
body[data-jp-theme-light="false"] .at-plan{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--paper:transparent}
.at-plan h3{font-size:14px;margin:12px 0 4px}.at-plan p{margin:2px 0}.at-plan .soft{color:var(--soft)}
.at-plan table{border-collapse:collapse;font:inherit;color:inherit;font-variant-numeric:tabular-nums}
.at-plan table td,.at-plan table th{padding:2px 10px 2px 0;text-align:left;border-bottom:1px solid var(--line)}
.at-plan img{height:auto;display:block}.at-plan .found{font-weight:600}
""".replace("\n", "")


def html_report(plan: PlanData) -> str:
    """Return the plan as an HTML fragment with its own style."""
    costs = plan.decision_costs()
    rows = list(rank_rows(plan, costs))
    parts = [
        f"<style>{_STYLE}</style>",
        *_head(plan),
        "<h3>Plans compared</h3>",
        html_table(HEADS, list(comparison_rows(plan)), found=0),
        "<h3>One step</h3>",
        timeline_chart(timeline(costs, plan.cost), plan.cost.step_s, len(plan.stages)),
        "<h3>Memory per rank</h3>",
        memory_chart(rows),
        "<h3>Devices</h3>",
        mesh_chart(plan),
    ]
    drawn = graph_chart(costs)
    room = MOST_BYTES - sum(len(part.encode()) for part in parts) - 200
    parts += ["<h3>Model</h3>", drawn] if len(drawn.encode()) < room else []
    return f'<div class="at-plan">{"".join(parts)}</div>'


def _head(plan: PlanData) -> Iterator[str]:
    cost = plan.cost
    where = escape(str(plan.full_cluster))
    proved = proof(plan.gap, plan.solution.complete, plan.unsupported_work, plan.among)
    yield f"<p><b>{escape(plan.name)}</b> on {where}: <b>{escape(plan.solution.name)}</b></p>"
    yield f"<p><b>{ms(cost.step_s)}</b> per step, {proved}; {format_memory(cost.peak_memory_bytes)} per rank</p>"
    yield (
        f'<p class="soft">{escape(str(plan.mesh))}; {count(len(plan.stages), "stage")}, '
        f"{count(plan.microbatches, 'microbatch', 'microbatches')}; "
        f"compute {ms(cost.compute_s)}, communication {ms(cost.communication_s)}, bubble {ms(cost.bubble_s)}, "
        f"optimizer {ms(cost.optimizer_s)}; searched in {plan.search_s:.2f} s</p>"
    )
    for note in plan.notes:
        yield f'<p class="soft">{escape(note)}</p>'
