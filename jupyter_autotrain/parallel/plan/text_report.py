"""A plan in plain text: what a terminal, a log or a `repr` shows."""

from __future__ import annotations

from jupyter_autotrain.core.sizes import format_bytes, format_memory
from jupyter_autotrain.parallel.plan.formatting import aligned, ms, proof
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.plan_tables import HEADS, comparison_rows, rank_rows
from jupyter_autotrain.parallel.search import RankCost


def summary(plan: PlanData) -> str:
    """The plan in a few lines and the table of candidates."""
    cost = plan.cost
    solution = plan.solution
    proved = proof(plan.gap, solution.complete, plan.unsupported_work)
    lines = [
        f"{plan.name} on {plan.full_cluster}: {ms(cost.step_s)} per step, {proved}",
        f"  mesh    {plan.mesh}" + _pipeline(plan),
        f"  time    compute {ms(cost.compute_s)} + communication {ms(cost.communication_s)} + bubble "
        f"{ms(cost.bubble_s)} + optimizer {ms(cost.optimizer_s)}",
        f"  memory  {format_memory(cost.peak_memory_bytes)} per rank of {format_memory(solution.limit_bytes)} usable"
        + _states(plan),
        f"  found   trace {plan.trace_s:.2f} s, search {plan.search_s:.2f} s ({plan.request.search})",
    ]
    if plan.unknown:
        lines.append(f"  unknown ops, replicated: {', '.join(plan.unknown)}")
    lines += [f"  note    {note}" for note in plan.notes]
    return "\n".join([*lines, "", comparison(plan)])


def comparison(plan: PlanData) -> str:
    """The found plan beside the well-known ones."""
    return aligned(HEADS, list(comparison_rows(plan)))


def rank_table(plan: PlanData) -> str:
    """What a rank of each stage holds and sends in a step."""
    ways = [*plan.mesh.axes, *(["stages"] if len(plan.stages) > 1 else [])]
    rows = []
    for rank, row in zip(plan.cost.ranks, rank_rows(plan, plan.decision_costs()), strict=True):
        sent = row["sent_bytes"]
        assert isinstance(sent, dict)
        limit_bytes = row["limit_bytes"]
        assert isinstance(limit_bytes, int | float)
        rows.append((*_held(rank), format_memory(limit_bytes), *(format_bytes(sent[way]) for way in ways)))
    heads = ("stage", "ranks", "parameters", "gradients", "optimizer", "activations", "peak", "limit")
    return aligned((*heads, *(f"sent on {way}" for way in ways)), rows)


def _held(rank: RankCost) -> tuple[str, ...]:
    sizes = (rank.parameter_bytes, rank.gradient_bytes, rank.optimizer_bytes, rank.activation_bytes, rank.peak_bytes)
    return str(rank.stage), str(rank.ranks), *map(format_memory, sizes)


def _pipeline(plan: PlanData) -> str:
    parts = []
    if len(plan.stages) > 1:
        blocks = "+".join(str(stage.blocks) for stage in plan.stages)
        parts.append(f"{len(plan.stages)} stages of {blocks} blocks, {plan.schedule}")
    if plan.microbatches > 1:
        parts.append(f"{plan.microbatches} microbatches")
    return "".join(f", {part}" for part in parts)


def _states(plan: PlanData) -> str:
    total = sum(plan.zero.values()) or 1
    zero = " + ".join(f"ZeRO-{int(level)} for {count / total:.0%}" for level, count in plan.zero.items() if level)
    modes = " + ".join(f"{mode} in {count} blocks" for mode, count in plan.recompute.items() if mode != "none")
    hosts = " + ".join(f"{where}s of {count / total:.0%}" for where, count in plan.offloaded.items())
    parts = (f"{zero} of the parameters" if zero else "", f"{hosts} on the host" if hosts else "")
    return "".join(f"; {part}" for part in (*parts, f"recompute {modes}" if modes else "") if part)
