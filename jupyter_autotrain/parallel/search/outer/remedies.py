"""The requests that would fit where no plan does: less held by each device, by uniform plans with all else as asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from math import inf

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.search.factors.factors import OpChoice
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.uniform import Held, UniformPlans

SMALL = 16  # devices from which more are looked for by doubling, not one by one
MOST_TIMES = 16  # as many devices are looked at, at most
SHORTER = (0.5, 0.25, 0.125)  # of the tokens


def remedies(uniform: UniformPlans, limit_bytes: float) -> list[str]:
    """Return what would fit, each with what a device then holds, least change first.

    Args:
        uniform: The uniform plans of a search without an answer.
        limit_bytes: Memory of a rank.
    """
    held = list(uniform.held())
    found = [*_recompute(uniform), *_offload(uniform, held), *_adapters(held), *_fewer_tokens(held, limit_bytes)]
    fitting = [
        f"{what} ({format_memory(held_bytes, up=True)})" for what, held_bytes in found if held_bytes <= limit_bytes
    ]
    more = _more_devices(uniform)
    return [*([f"{more} devices"] if more else []), *fitting]


def _recompute(uniform: UniformPlans) -> Iterator[tuple[str, float]]:
    """Yield recompute of whole layers, where the request leaves it out."""
    context = uniform.context
    if context.chain and Recompute.FULL not in context.modes:
        again = replace(context, modes=(Recompute.FULL,))
        held = UniformPlans(again, uniform.space, uniform.mesh, uniform.accepts).held()
        states = (one.parameters + one.gradients + one.optimizer + one.activations for one in held)
        yield "full recompute", min(states, default=inf)


def _offload(uniform: UniformPlans, held: list[Held]) -> Iterator[tuple[str, float]]:
    """Yield optimizer states in the host's memory, with the word where that does not run."""
    if held:
        word = "" if _accepts_offload(uniform) else ", exported only"
        yield f"offload=True{word}", min(one.parameters + one.gradients + one.activations for one in held)


def _accepts_offload(uniform: UniformPlans) -> bool:
    if uniform.accepts is None:
        return True
    layout = next(uniform.layouts())
    plan = uniform.priced(layout, next(uniform.candidates(layout)))[0]
    outcome = uniform.outcome(plan)
    on_host = OpChoice(0, replace(plan.states, offload=True))
    stages = [replace(stage, choices=dict.fromkeys(stage.choices, on_host)) for stage in outcome.stages]
    return uniform.accepts(replace(outcome, stages=tuple(stages)))


def _adapters(held: list[Held]) -> Iterator[tuple[str, float]]:
    """Yield training of adapters alone: weights stay, their gradients and optimizer states are next to nothing."""
    if held:
        yield "LoRA", min(one.parameters + one.activations for one in held)


def _fewer_tokens(held: list[Held], limit_bytes: float) -> Iterator[tuple[str, float]]:
    """Yield the longest sequences that fit, as a share of those asked for."""
    for share in SHORTER if held else ():
        least = min(one.parameters + one.gradients + one.optimizer + share * one.activations for one in held)
        if least <= limit_bytes:
            yield f"{share:.3g} of the tokens in a sample", least
            return


def _more_devices(uniform: UniformPlans) -> int | None:
    """Return the fewest devices of the same kind on which some uniform plan fits; None where none is found."""
    cluster = uniform.context.cluster
    count = cluster.devices
    if len(cluster.kinds) > 1:
        return None
    one_by_one = range(count + 1, 2 * count) if count <= SMALL else ()
    doubled = (count * 2**power for power in range(1, MOST_TIMES.bit_length()))
    return next((more for more in chain(one_by_one, doubled) if _fits(uniform, cluster.scaled(devices=more))), None)


def _fits(uniform: UniformPlans, cluster: ClusterSpec) -> bool:
    context = replace(uniform.context.for_cluster(cluster), progress=ProgressMonitor())
    scaled = UniformPlans(context, uniform.space, None, uniform.accepts)
    return any(one.fits for one in scaled.held())
