"""What a reader must know to use a plan, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.plan.units import ms
from jupyter_autotrain.parallel.search import Solution
from jupyter_autotrain.parallel.search.fewer import idle_devices


def notes_of(graph: OpGraph, solution: Solution) -> tuple[str, ...]:
    """Sentences about a plan, most important first; none where there is nothing to say."""
    return (*_idle(solution), *_traced(graph), *_batch(graph))


def _idle(solution: Solution) -> Iterator[str]:
    """Which devices are not used, and why."""
    if solution.given is None:
        return
    idle = " and ".join(f"{count}x{name}" for name, count in idle_devices(solution.given, solution.cluster))
    step, used = ms(solution.cost.step_s), solution.cluster.devices
    whole = f"with all {solution.given.devices} devices of {solution.given}"
    if solution.all_devices_s is None:
        yield f"Idle: {idle}. No plan was found {whole}; with these {used} a step takes {step}."
    else:
        yield f"Idle: {idle}. The best plan found {whole} takes {ms(solution.all_devices_s)}, with these {used} {step}."


def _traced(graph: OpGraph) -> Iterator[str]:
    """What of the model was left out of the trace."""
    if graph.meta.get("note"):
        yield graph.meta["note"]


def _batch(graph: OpGraph) -> Iterator[str]:
    if graph.uncut:
        yield f"The batch is not cut into microbatches, which could change the mathematics: {graph.uncut}."
        yield (
            "Split along the batch, devices must exchange what samples compare: DTensor does; plain DDP does not, and "
            "BatchNorm does as SyncBatchNorm only."
        )
