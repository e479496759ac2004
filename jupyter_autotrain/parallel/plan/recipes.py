"""From a plan's decision to its recipe."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import prod

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import LayerRecipe, Recipe
from jupyter_autotrain.parallel.choices import beyond, executed
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.expert_axis import expert_recipe
from jupyter_autotrain.parallel.graph.graph import OpGraph, Tensor, TensorKind
from jupyter_autotrain.parallel.pipeline_axis import pipeline_recipe
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.modules import ModuleSharding, layers_of, modules_of
from jupyter_autotrain.parallel.tensor_axis import tensor_axis, tensor_recipe

_MOST_NAMED = 3


def recipe_of(costs: DecisionCosts) -> Recipe:
    """Return how to execute a plan.

    Raises:
        PlanError: The plan has choices that are not executed.
    """
    graph = costs.graph
    decision = costs.decision
    _refuse_beyond(graph, decision)
    modules = modules_of(costs)
    ranks = decision.mesh.devices * len(decision.stages)
    layers = layers_of(modules)
    zero = max((module.zero for module in modules), default=ZeroLevel.NONE)
    return Recipe(
        ranks=ranks,
        replicas=_replicas(graph, decision),
        zero=zero,
        layers=tuple(
            LayerRecipe(f"{container}.{index}".lstrip("."), zero, _mode(group))
            for (container, index), group in layers.items()
        ),
        microbatches=decision.microbatches,
        compute=compute_format(graph),
        weights=frozenset(t.name for t in _trained(graph)),
        without_cache=bool(graph.meta.get("cache")),
        without_checkpointing=bool(graph.meta.get("note")),
        tensor=tensor_recipe(graph, decision),
        pipeline=pipeline_recipe(graph, decision),
        experts=expert_recipe(graph, decision),
    )


def _refuse_beyond(graph: OpGraph, decision: Decision) -> None:
    """Refuse a plan with choices that are not executed.

    Raises:
        PlanError: With the first of them, and with what would run.
    """
    found = beyond(graph, decision)
    if found:
        rest = len(found) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        raise PlanError(
            f"The plan has what is not executed: {'; '.join(found[:_MOST_NAMED])}{more}.",
            f"Executed are: {', '.join(executed())}.",
            "Plan with execute=True and no pins for it, or as the plan's notes say; or take plan.to_code().",
        )


def _replicas(graph: OpGraph, decision: Decision) -> int:
    """Return how many groups of ranks hold all shards: with hybrid sharding those on the innermost axis share them."""
    shared = tensor_axis(graph, decision)
    sizes = [size for axis, size in enumerate(decision.mesh.shape) if axis != shared]
    hybrid = any(op.states.inner for op in decision.ops.values())
    return prod(sizes[:-1]) if hybrid else 1


def _mode(modules: Iterable[ModuleSharding]) -> Recompute:
    return Counter(module.recompute for module in modules).most_common(1)[0][0]


def compute_format(graph: OpGraph) -> str:
    """Return the 16-bit format of the weights, which then have 32-bit master copies; "" for wider weights."""
    weights: dict[str, int] = defaultdict(int)
    for tensor in _trained(graph):
        weights[tensor.dtype] += tensor.numel
    most = max(weights, key=lambda dtype: weights[dtype], default="")
    return most if most == "bfloat16" else ""


def _trained(graph: OpGraph) -> Iterator[Tensor]:
    return (t for t in graph.tensors if t.kind is TensorKind.PARAMETER and t.trainable)
