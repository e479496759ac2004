"""Plans as the configuration of other tools: degrees, recompute, microbatch and precision in each tool's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.plan.degrees import Degrees
from jupyter_autotrain.parallel.plan.exports import frameworks, trainers
from jupyter_autotrain.parallel.plan.exports.shared import Missing
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.plan.plan_data import PlanData

_Write = Callable[[Degrees], str]
_Lacks = Callable[[Degrees], Missing]

EXPORTS: Final[Mapping[str, tuple[_Write, _Lacks]]] = MappingProxyType(
    {
        "accelerate": (trainers.accelerate, trainers.accelerate_lacks),
        "torchtitan": (frameworks.torchtitan, frameworks.torchtitan_lacks),
        "lightning": (trainers.lightning, trainers.lightning_lacks),
        "deepspeed": (frameworks.deepspeed, frameworks.deepspeed_lacks),
        "megatron": (frameworks.megatron, frameworks.megatron_lacks),
        "trainer": (trainers.trainer, trainers.trainer_lacks),
    }
)


def export(plan: PlanData, tool: str) -> str:
    """Return a plan as a tool's configuration; its first lines are comments, with what the tool cannot express.

    Raises:
        PlanError: No tool has that name.
    """
    if tool not in EXPORTS:
        near = closest_match(tool, list(EXPORTS), cutoff=0.0)
        raise PlanError(
            f"There is no export for {tool!r}.",
            f"One of {', '.join(EXPORTS)}; the nearest is {near!r}.",
            "Correct it, or leave it out for code of torch alone.",
        )
    write, lacks = EXPORTS[tool]
    degrees = Degrees.of(plan)
    memory = format_memory(plan.cost.peak_memory_bytes)
    lines = [f"{plan.name} on {plan.cluster}: {plan.solution.name}; {ms(plan.cost.step_s)} and {memory} per rank."]
    missing = [*lacks(degrees), *degrees.beside]
    if missing:
        lines += ["Not expressed here:", *(f"- {sentence}." for sentence in missing)]
    head = "\n".join(f"# {line}" for line in lines)
    return f"{head}\n{write(degrees)}"
