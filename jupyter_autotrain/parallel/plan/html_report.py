"""A plan as one static page: no script, no network, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from jupyter_autotrain.core.sizes import format_memory
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.parallel.plan.formatting import ms, proof
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.plan_tables import HEADS, comparison_rows, rank_rows
from jupyter_autotrain.parallel.plan.svg_charts import graph_chart, memory_chart, mesh_chart, timeline_chart
from jupyter_autotrain.parallel.plan.timeline import timeline

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
    """The plan as an HTML fragment with its own style."""
    costs = plan.decision_costs()
    rows = list(rank_rows(plan, costs))
    parts = [
        f"<style>{_STYLE}</style>",
        *_head(plan),
        "<h3>Plans compared</h3>",
        _candidates(plan),
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
    proved = proof(plan.gap, plan.solution.complete, plan.unsupported_work)
    yield f"<p><b>{escape(plan.name)}</b> on {where}: <b>{ms(cost.step_s)}</b> per step, {proved}</p>"
    yield (
        f'<p class="soft">{escape(str(plan.mesh))}; {count(len(plan.stages), "stage")}, '
        f"{count(plan.microbatches, 'microbatch', 'microbatches')}; "
        f"compute {ms(cost.compute_s)}, communication {ms(cost.communication_s)}, bubble {ms(cost.bubble_s)}, "
        f"optimizer {ms(cost.optimizer_s)}; {format_memory(cost.peak_memory_bytes)} per rank; "
        f"searched in {plan.search_s:.2f} s</p>"
    )
    for note in plan.notes:
        yield f'<p class="soft">{escape(note)}</p>'


def _candidates(plan: PlanData) -> str:
    return _table(HEADS, [(place == 0, cells) for place, cells in enumerate(comparison_rows(plan))])


def _table(heads: Sequence[str], rows: Sequence[tuple[bool, Sequence[str]]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(_row(cells, found=found) for found, cells in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _row(cells: Sequence[str], *, found: bool) -> str:
    texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr{' class=found' if found else ''}>{texts}</tr>"
