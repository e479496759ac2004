"""Bytes kept for the backward pass, the op that they count for, and what each recompute mode drops.

A saved tensor is charged once, on the edge from its producer to the first op that saves it, in the smaller of the two
layouts: a consumer that gathers a split tensor keeps the slice and gathers again (Korthikanti et al. 2022, section
4.2.2). Under full recompute a block keeps what enters it; its own activations exist once per stage, while the block is
computed again, so each of the run's `count` blocks is charged 1/count of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.graph.graph import (
    DTYPE_BYTES,
    Family,
    LoopRole,
    Op,
    Operand,
    OpGraph,
    RepeatedBlocks,
    TensorKind,
)

MODES = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
Shares = tuple[float, float, float]  # share of the bytes that is kept, per mode of `MODES`
_FOLLOWERS = frozenset({Family.ELEMENTWISE, Family.NORM, Family.DROPOUT, Family.REDUCTION})


@dataclass(frozen=True, slots=True)
class GraphAnalysis:
    """Facts of a graph that the cost model needs, whatever the mesh.

    Attributes:
        edge_shares: (tensor, consumer) → shares, charged in the smaller layout of producer and consumer.
        own_shares: Op → its tensors kept in the op's own layout, with their shares.
        moved_together: (tensor, product) → products with weights that read it in one block, such as queries, keys and
            values: they share a change of its layout, and the sum of its gradient.
        extra_shares: Op → shares of its `saved_extra_bytes` and `unfused_extra_bytes`.
        again: Op → how often its forward pass runs again, per mode.
        repeats: Op → blocks in its run (1 outside runs).
        batched: Tensors whose bytes shrink with the microbatch.
        differentiable: Tensors that get a gradient.
        made: Tensors that some op makes.
        charged_parameters: Op → parameters whose states it is charged for (shared ones once).
        looked_up: Tables that nothing does with but look rows up, in one op.
        block_representatives: Op of a run → the op at its place in the run's first block.
        forms: Op outside runs → a number, equal for ops that cost the same.
    """

    edge_shares: Mapping[tuple[int, int], Shares]
    own_shares: Mapping[int, tuple[tuple[int, Shares], ...]]
    moved_together: Mapping[tuple[int, int], int]
    extra_shares: Mapping[int, Shares]
    recomputes: Mapping[int, Shares]
    repeats: Mapping[int, int]
    batched: frozenset[int]
    differentiable: frozenset[int]
    made: frozenset[int]
    charged_parameters: Mapping[int, tuple[int, ...]]
    looked_up: frozenset[int]
    block_representatives: Mapping[int, int]
    forms: Mapping[int, int]


def analyse_graph(graph: OpGraph) -> GraphAnalysis:
    """Analyse a graph; linear in it."""
    spans = _spans(graph)
    repeats = {i: run.count for run, span in spans for i in span}
    core = _attention_core(graph)
    edges, own = _charges(graph, core, repeats)
    analysis = GraphAnalysis(
        edge_shares=edges,
        own_shares=own,
        moved_together=_moved_together(graph),
        extra_shares={op.id: _shares(op.id, repeats, dropped=op.id in core) for op in graph.ops},
        recomputes={op.id: (0.0, float(op.id in core), float(op.id in repeats)) for op in graph.ops},
        repeats={op.id: repeats.get(op.id, 1) for op in graph.ops},
        batched=_batched(graph),
        differentiable=_differentiable(graph),
        made=frozenset(graph.producers),
        charged_parameters=_parameters(graph),
        looked_up=_looked_up(graph),
        block_representatives={i: run.start + (i - run.start) % run.length for run, span in spans for i in span},
        forms={},
    )
    return replace(analysis, forms=_forms(graph, analysis))


def _attention_core(graph: OpGraph) -> frozenset[int]:
    """Attention ops; or products without parameters and what lies between them (scores, softmax, dropout)."""
    core: set[int] = set()
    for op in graph.ops:
        inside = op.family is Family.ATTENTION
        if op.family is Family.MATMUL:
            inside = not _parameters_of(graph, op)
        elif op.family in _FOLLOWERS and op.inputs:
            inside = graph.producers.get(op.inputs[0].tensor) in core and _is_core_output(op, graph)
        if inside:
            core.add(op.id)
    return frozenset(core)


def _is_core_output(op: Op, graph: OpGraph) -> bool:
    """Scores have at least four dims (batch, heads, rows, columns)."""
    return len(graph.tensors[op.outputs[0].tensor].shape) >= 4


def _shares(op: int, repeats: Mapping[int, int], *, dropped: bool) -> Shares:
    return (1.0, 0.0 if dropped else 1.0, 1.0 / repeats[op] if op in repeats else 1.0)


def _charges(
    graph: OpGraph, core: frozenset[int], repeats: Mapping[int, int]
) -> tuple[dict[tuple[int, int], Shares], dict[int, tuple[tuple[int, Shares], ...]]]:
    edges: dict[tuple[int, int], Shares] = {}
    own: dict[int, tuple[tuple[int, Shares], ...]] = {}
    for tensor, users in _savers(graph).items():
        first = users[0]
        maker = graph.producers.get(tensor)
        inner = core.issuperset([first if maker is None else maker, *users])
        shares = _shares(first, repeats, dropped=inner)
        if maker is None or maker == first or tensor not in {x.tensor for x in graph.ops[first].inputs}:
            holder = graph.consumers[tensor][0] if maker is None else maker  # an input may be saved through a view
            own[holder] = (*own.get(holder, ()), (tensor, shares))
        else:
            edges[tensor, first] = shares
    _charge_block_inputs(graph, edges)
    return edges, own


def _savers(graph: OpGraph) -> dict[int, list[int]]:
    """Return the ops that save each saved tensor; parameters are there anyway."""
    found: dict[int, list[int]] = {}
    for op in graph.ops:
        for tensor in dict.fromkeys(op.saved):
            if graph.tensors[tensor].kind is not TensorKind.PARAMETER:
                found.setdefault(tensor, []).append(op.id)
    return found


def _charge_block_inputs(graph: OpGraph, edges: dict[tuple[int, int], Shares]) -> None:
    """Under full recompute every tensor that enters a block is kept whole, once per block."""
    for run in graph.repeated_blocks:
        for block in range(run.count):
            first = run.start + block * run.length
            inputs = [(x.tensor, op.id) for op in graph.ops[first : first + run.length] for x in op.inputs]
            for tensor, op in dict(reversed(inputs)).items():
                if graph.producers.get(tensor, first) < first:
                    kept = edges.get((tensor, op), (0.0, 0.0, 0.0))
                    edges[tensor, op] = (kept[0], kept[1], 1.0)


def _moved_together(graph: OpGraph) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    blocks = {op: (run.start, (op - run.start) // run.length) for run, span in _spans(graph) for op in span}
    for tensor, readers in graph.consumers.items():
        products = [
            op for op in readers if graph.ops[op].family is Family.MATMUL and _parameters_of(graph, graph.ops[op])
        ]
        together = Counter(map(blocks.get, products))
        found.update(((tensor, op), together[blocks.get(op)]) for op in products)
    return found


def _spans(graph: OpGraph) -> list[tuple[RepeatedBlocks, range]]:
    return [(run, range(run.start, run.start + run.length * run.count)) for run in graph.repeated_blocks]


def _batched(graph: OpGraph) -> frozenset[int]:
    found: set[int] = set()
    for op in graph.ops:
        for batch in [index for index, loop in enumerate(op.loops) if loop.role is LoopRole.BATCH]:
            along = [x.tensor for x in (*op.inputs, *op.outputs) if batch in x.loops]
            found.update(along or _activations(graph, op))
    return frozenset(found)


def _activations(graph: OpGraph, op: Op) -> list[int]:
    """Return of an op with the samples as the inner part of some dim, what it reads and makes."""
    tensors = [x.tensor for x in (*op.inputs, *op.outputs)]
    return [t for t in tensors if graph.tensors[t].kind in (TensorKind.INPUT, TensorKind.ACTIVATION)]


def _differentiable(graph: OpGraph) -> frozenset[int]:
    found = {t.id for t in graph.tensors if t.trainable}
    for op in graph.ops:
        if not found.isdisjoint([x.tensor for x in op.inputs]):
            found.update(x.tensor for x in op.outputs if _floating(graph.tensors[x.tensor].dtype))
    return frozenset(found)


def _floating(dtype: str) -> bool:
    return dtype in DTYPE_BYTES and dtype.startswith(("float", "bfloat", "complex"))


def _parameters(graph: OpGraph) -> dict[int, tuple[int, ...]]:
    seen = {second for _, second in graph.tied}
    found = {}
    for op in graph.ops:
        mine = _parameters_of(graph, op)
        found[op.id] = tuple(t for t in dict.fromkeys(mine) if t not in seen)
        seen.update(mine)
    return found


def _parameters_of(graph: OpGraph, op: Op) -> list[int]:
    return [x.tensor for x in op.inputs if graph.tensors[x.tensor].kind is TensorKind.PARAMETER]


def _looked_up(graph: OpGraph) -> frozenset[int]:
    embeddings = [op for op in graph.ops if op.family is Family.EMBEDDING]
    tables = set(chain.from_iterable(_parameters_of(graph, op) for op in embeddings))
    return frozenset(t for t in tables.difference(*graph.tied) if len(graph.consumers[t]) == 1)


def _forms(graph: OpGraph, analysis: GraphAnalysis) -> dict[int, int]:
    numbers: dict[object, int] = {}
    alone = (op for op in graph.ops if op.id not in analysis.block_representatives)
    return {op.id: numbers.setdefault(_form(graph, op, analysis), len(numbers)) for op in alone}


def _form(graph: OpGraph, op: Op, analysis: GraphAnalysis) -> object:
    """Everything of an op that its cost depends on."""
    operands = (*op.outputs, *op.inputs)
    places = {x.tensor: place for place, x in reversed(list(enumerate(operands)))}
    charged = analysis.charged_parameters[op.id]

    def seen(x: Operand) -> object:
        tensor = graph.tensors[x.tensor]
        kind = (tensor.shape, tensor.dtype, tensor.kind, tensor.trainable)
        return x.loops, kind, x.tensor in analysis.batched, x.tensor in charged, x.tensor in analysis.looked_up

    return (
        op.family,
        tuple((loop.name, loop.size, loop.role, loop.shardable) for loop in op.loops),
        tuple(map(seen, operands)),
        len(op.outputs),
        (op.flops_forward, op.flops_backward, op.bytes_forward, op.bytes_backward),
        (op.saved_extra_bytes, op.unfused_extra_bytes),
        (analysis.extra_shares[op.id], analysis.recomputes[op.id], analysis.repeats[op.id]),
        tuple((places[tensor], shares) for tensor, shares in analysis.own_shares.get(op.id, ())),
    )
