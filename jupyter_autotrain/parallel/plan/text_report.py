"""A plan in plain text: what a terminal, a log or a `repr` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.formatting import PrintedTable, aligned, ms, proof, wrapped
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.traffic import sent_bytes
from jupyter_autotrain.parallel.search import Alternative, Cost, RankCost

EXPORTED: Final = ", exported only"
KINDS: Final = {
    "DDP": "data",
    "FSDP": "data",
    "HSDP": "data",
    "FSDP + tensor": "hybrid",
    "Megatron": "hybrid",
}


def candidate_rows(plan: PlanData) -> Iterator[dict[str, JsonValue]]:
    """Yield the found plan, the well-known ones, then the best other outer choices."""
    yield _candidate("found", "found", Alternative(plan.solution.name, plan.cost, True, beyond=plan.beyond))
    if plan.solution.best:
        yield _candidate("fastest", "fastest", plan.solution.best)
    for name, baseline in plan.solution.baselines.items():
        yield _candidate(name, KINDS.get(name, "other"), baseline)
    for other in plan.candidates:
        if other.what not in {plan.solution.name, plan.solution.best and plan.solution.best.what}:
            yield _candidate(other.what, "other", other)


def rank_rows(plan: PlanData, costs: DecisionCosts) -> Iterator[dict[str, JsonValue]]:
    """One row per stage: memory by kind, the limit, and bytes sent per axis."""
    size = plan.mesh.devices
    for rank, stage in zip(plan.cost.ranks, plan.stages, strict=True):
        device = plan.cluster.slowest(rank.stage * size, (rank.stage + 1) * size)
        yield {
            "stage": rank.stage,
            "device": stage.device,
            "ranks": rank.ranks,
            "blocks": stage.blocks,
            "parameter_bytes": rank.parameter_bytes,
            "gradient_bytes": rank.gradient_bytes,
            "optimizer_bytes": rank.optimizer_bytes,
            "activation_bytes": rank.activation_bytes,
            "peak_bytes": rank.peak_bytes,
            "limit_bytes": device.limit_bytes(plan.request.limits.memory_bytes),
            "sent_bytes": dict(sent_bytes(costs, rank.stage)),
        }


def _candidate(name: str, kind: str, found: Alternative) -> dict[str, JsonValue]:
    cost = found.cost
    times = cost_fields(cost) if cost else dict.fromkeys(_COST_KEYS)
    return {
        "name": name,
        "kind": kind,
        "what": found.what + (EXPORTED if found.beyond else ""),
        "fits": found.fits,
        "reason": found.reason,
        **times,
    }


_COST_KEYS: Final = (
    "step_s",
    "compute_s",
    "communication_s",
    "bubble_s",
    "optimizer_s",
    "peak_memory_bytes",
    "sent_bytes",
)


def cost_fields(cost: Cost) -> dict[str, JsonValue]:
    """Return a plan's seconds and bytes by name."""
    return {key: None if getattr(cost, key) is None else float(getattr(cost, key)) for key in _COST_KEYS}


RANK_HEADS: Final = ("stage", "weights", "grads", "optimizer", "activations", "peak", "limit", "sent")
HEADS: Final = ("plan", "step", "memory", "sent", "split; memory and sent bytes of a rank")


def comparison_rows(plan: PlanData) -> Iterator[tuple[str, ...]]:
    """Yield the found plan beside the well-known ones, in words: a row for each, under `HEADS`."""
    for row in candidate_rows(plan):
        if row["kind"] != "other":
            step = row["step_s"]
            peak = row["peak_memory_bytes"]
            sent = row["sent_bytes"]
            words = (_cell(step, ms), _cell(peak, format_memory), _cell(sent, format_memory))
            yield str(row["name"]), *words, str(row["what"] if row["fits"] else row["reason"])


def _cell(value: JsonValue, unit: Callable[[float], str]) -> str:
    return unit(value) if isinstance(value, float) else "-"


def summary(plan: PlanData) -> str:
    """Return the plan in a few lines and the table of candidates."""
    cost = plan.cost
    solution = plan.solution
    proved = proof(plan.gap, solution.complete, plan.unsupported_work, plan.among)
    lines = [
        f"{plan.name} on {plan.full_cluster}: {solution.name}",
        f"  step    {ms(cost.step_s)}, {proved}",
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
    return f"{wrapped(lines, len('  found   '))}\n\n{comparison(plan)}"


def comparison(plan: PlanData) -> str:
    """Return the found plan beside the well-known ones."""
    return aligned(HEADS, list(comparison_rows(plan)))


def rank_table(plan: PlanData) -> PrintedTable:
    """Return what a rank of each stage holds and sends in a step."""
    rows = []
    for rank, row in zip(plan.cost.ranks, rank_rows(plan, plan.decision_costs()), strict=True):
        sent = row["sent_bytes"]
        assert isinstance(sent, dict)
        limit_bytes = row["limit_bytes"]
        assert isinstance(limit_bytes, int | float)
        ways = ", ".join(f"{way} {format_memory(sent_bytes)}" for way, sent_bytes in sent.items())
        rows.append((*_held(rank), format_memory(limit_bytes), ways))
    return PrintedTable(RANK_HEADS, rows)


def _held(rank: RankCost) -> tuple[str, ...]:
    sizes = (rank.parameter_bytes, rank.gradient_bytes, rank.optimizer_bytes, rank.activation_bytes, rank.peak_bytes)
    return f"{rank.stage} ({count(rank.ranks, 'rank')})", *map(format_memory, sizes)


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
    words = ((zero, f"; {zero} of the parameters"), (hosts, f"; {hosts} on the host"), (modes, f"; recompute {modes}"))
    return "".join(text for found, text in words if found)
