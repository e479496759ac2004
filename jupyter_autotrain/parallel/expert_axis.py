"""The expert axis of a decision: what executing it takes, or why it is not executed.

Executed is an axis that splits the experts of mixtures, and samples elsewhere: the innermost of a plan whose other axes
split samples alone, without stages. Mixtures whose experts a decision does not split run as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod

from jupyter_autotrain.parallel.apply.recipe import ExpertRecipe
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import EXPERTS, LoopRole, Op, OpGraph, Tensor, TensorKind
from jupyter_autotrain.parallel.tensor_axis import roles_of_axes
from jupyter_autotrain.parallel.tensor_layouts import NotExecutedError


def expert_axis(graph: OpGraph, decision: Decision) -> int | None:
    """Return the axis that splits experts; None where no axis does, or several do."""
    found = [axis for axis, roles in enumerate(roles_of_axes(graph, decision)) if LoopRole.EXPERT in roles]
    return found[0] if len(found) == 1 else None


def expert_recipe(graph: OpGraph, decision: Decision) -> ExpertRecipe | None:
    """Return what ranks of the expert axis do; None without such an axis.

    Raises:
        NotExecutedError: The decision uses the axis otherwise than what is executed.
    """
    axis = expert_axis(graph, decision)
    if axis is None:
        return None
    _check_axes(graph, decision, axis)
    sharers = prod(decision.mesh.shape[:axis])
    modules = [_module(graph, op, sharers) for op in _split_mixtures(graph, decision, axis)]
    return ExpertRecipe(decision.mesh.shape[axis], tuple(dict.fromkeys(modules)))


def why_not_exchanged(graph: OpGraph, decision: Decision) -> str:
    """Return why a decision's expert axis is not executed; "" where it is, or where there is none."""
    try:
        expert_recipe(graph, decision)
    except NotExecutedError as reason:
        return str(reason)
    return ""


def wholly_split(graph: OpGraph, decision: Decision) -> frozenset[int]:
    """Return the ops whose experts lie each on one rank alone, which leaves nothing to share out of them."""
    axis = expert_axis(graph, decision)
    if axis is None or prod(decision.mesh.shape) > decision.mesh.shape[axis]:
        return frozenset()
    return frozenset(op.id for op in _split_mixtures(graph, decision, axis))


def _check_axes(graph: OpGraph, decision: Decision, axis: int) -> None:
    names = decision.mesh.axes
    if len(decision.stages) > 1:
        raise NotExecutedError("it lies in pipeline stages")
    if any(op.states.inner for op in decision.ops.values()):
        raise NotExecutedError("weights are shared out within groups")
    if axis != len(names) - 1:
        raise NotExecutedError("it is not the innermost one")
    for number, roles in enumerate(roles_of_axes(graph, decision)):
        name = names[number]
        others = roles - {LoopRole.BATCH}
        if number != axis and others:
            raise NotExecutedError(f"the axis {name} splits more than samples")
        if others - {LoopRole.EXPERT}:
            raise NotExecutedError("it splits more than experts and samples")


def _split_mixtures(graph: OpGraph, decision: Decision, axis: int) -> Iterator[Op]:
    for op in graph.ops:
        loop = decision.ops[op.name].split_loops(op)[axis]
        if loop is not None and loop.role is LoopRole.EXPERT:
            yield op


def _module(graph: OpGraph, op: Op, sharers: int) -> str:
    """Return the path of the module that holds an op's experts, of whose weights each data rank may have a part."""
    path = op.name.rpartition(".")[0]
    if path not in json.loads(graph.meta.get(EXPERTS, "[]")):
        raise NotExecutedError(f"{op.name} is no module of stacked experts with the tokens' choices as arguments")
    for weight in _weights(graph, op):
        if not any(size % sharers == 0 for size in weight.shape[1:]):
            raise NotExecutedError(f"{weight.name} has no size that {sharers} data ranks divide")
    return path


def _weights(graph: OpGraph, op: Op) -> Iterator[Tensor]:
    for x in op.inputs:
        if graph.tensors[x.tensor].kind is TensorKind.PARAMETER:
            yield graph.tensors[x.tensor]
