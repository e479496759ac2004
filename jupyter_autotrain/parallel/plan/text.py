"""A plan in plain text: what a terminal, a log or a `repr` shows."""

from __future__ import annotations

from jupyter_autotrain.core.sizes import format_bytes, format_memory
from jupyter_autotrain.parallel.plan.formatting import aligned, ms, proof
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.rows import HEADS, compared, ranks
from jupyter_autotrain.parallel.search import RankCost


def summary(record: PlanRecord) -> str:
    """The plan in a few lines and the table of candidates."""
    cost = record.cost
    solution = record.solution
    proved = proof(record.gap, solution.complete, record.unpriced)
    lines = [
        f"{record.name} on {record.given}: {ms(cost.step_s)} per step, {proved}",
        f"  mesh    {record.mesh}" + _pipeline(record),
        f"  time    compute {ms(cost.compute_s)} + communication {ms(cost.communication_s)} + bubble "
        f"{ms(cost.bubble_s)} + optimizer {ms(cost.optimizer_s)}",
        f"  memory  {format_memory(cost.peak_memory_bytes)} per rank of {format_memory(solution.limit_bytes)} usable"
        + _states(record),
        f"  found   trace {record.trace_s:.2f} s, search {record.search_s:.2f} s ({record.request.search})",
    ]
    if record.unknown:
        lines.append(f"  unknown ops, replicated: {', '.join(record.unknown)}")
    lines += [f"  note    {note}" for note in record.notes]
    return "\n".join([*lines, "", comparison(record)])


def comparison(record: PlanRecord) -> str:
    """The found plan beside the well-known ones."""
    return aligned(HEADS, list(compared(record)))


def rank_table(record: PlanRecord) -> str:
    """What a rank of each stage holds and sends in a step."""
    ways = [*record.mesh.axes, *(["stages"] if len(record.stages) > 1 else [])]
    rows = []
    for rank, row in zip(record.cost.ranks, ranks(record, record.priced()), strict=True):
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


def _pipeline(record: PlanRecord) -> str:
    parts = []
    if len(record.stages) > 1:
        blocks = "+".join(str(stage.blocks) for stage in record.stages)
        parts.append(f"{len(record.stages)} stages of {blocks} blocks, {record.schedule}")
    if record.microbatches > 1:
        parts.append(f"{record.microbatches} microbatches")
    return "".join(f", {part}" for part in parts)


def _states(record: PlanRecord) -> str:
    total = sum(record.zero.values()) or 1
    zero = " + ".join(f"ZeRO-{int(level)} for {count / total:.0%}" for level, count in record.zero.items() if level)
    modes = " + ".join(f"{mode} in {count} blocks" for mode, count in record.recompute.items() if mode != "none")
    hosts = " + ".join(f"{where}s of {count / total:.0%}" for where, count in record.hosted.items())
    parts = (f"{zero} of the parameters" if zero else "", f"{hosts} on the host" if hosts else "")
    return "".join(f"; {part}" for part in (*parts, f"recompute {modes}" if modes else "") if part)
