"""Predicted against published step times of Megatron-LM on A100 (Korthikanti et al. 2022, table 5).

The model is built as Megatron-LM ran it then: attention as separate products, softmax and dropout (no flash
attention), fused bias-dropout-add, 16-bit parameters with 32-bit gradients. The plan is Megatron's, pinned; time and
memory come from the same cost model that the search uses. Constants are the defaults: data sheets and stated
efficiencies, the same for every row.

Run: python benchmarks/megatron_accuracy.py
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.activations import analyse_graph
from jupyter_autotrain.parallel.cost.compute_lower_bound import compute_lower_bound
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.memory import Optimizer, Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import CostModel, Restriction, Settings
from jupyter_autotrain.parallel.cost.roofline import Efficiency
from jupyter_autotrain.parallel.cost.states import Assumptions, StateSharding
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.graph.builder import Builder, Costs
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, OpGraph
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.graph.rules import Call
from jupyter_autotrain.parallel.search.factors.factors import LagrangianWeights
from jupyter_autotrain.parallel.search.outer.branch_and_bound import solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.request.request import Candidate, mesh_of
from jupyter_autotrain.parallel.search.solution import cost_of
from jupyter_autotrain.parallel.search.stage.chain import chain_of
from jupyter_autotrain.parallel.search.stage.outcome import Outcome
from jupyter_autotrain.parallel.search.stage.stage_problem import StageProblem
from tests.example_graphs import linear


@dataclass(frozen=True)
class Case:
    """One row of the table: a model, its plan, and the measured seconds."""

    name: str
    layers: int
    width: int
    heads: int
    devices: int
    tensor: int
    stages: int
    chunks: int
    batch: int
    microbatch: int
    full_s: float = 0.0
    selective_s: float = 0.0
    sequence: int = 2048
    vocabulary: int = 51200


CASES = (
    Case("22B", 48, 6144, 64, 8, 8, 1, 1, 4, 4, 1.42, 1.10),
    Case("175B", 96, 12288, 96, 64, 8, 8, 3, 64, 1, 18.13, 13.75),
)


def build(case: Case) -> OpGraph:
    """Return the model at the batch of one replica."""
    b = Builder(case.name, "bfloat16")
    replicas = case.devices // case.tensor // case.stages
    shape = (case.batch // replicas, case.sequence, case.width)
    ids = b.input("ids", *shape[:2], dtype="int64")
    x = b.apply("embedding", [b.parameter("words", case.vocabulary, case.width), ids], shape, "embedding")
    x = b.apply("add", [x, b.parameter("places", 1, case.sequence, case.width)], shape, "places")
    x = b.apply("dropout", [x], shape, "dropout")
    for i in range(case.layers):
        x = _block(b, x, f"layers.{i}", shape, case.heads)
    logits = linear(b, _norm(b, x, "norm"), case.vocabulary, "head", bias=False)
    labels = b.input("labels", shape[0] * shape[1], dtype="int64")
    flat = b.apply("view", [logits], (shape[0] * shape[1], case.vocabulary), "view")
    rows = b.apply("_log_softmax", [flat], (shape[0] * shape[1], case.vocabulary), "log_softmax", dim=1)
    b.apply("nll_loss_forward", [rows, labels], (), "loss")
    return fold(fuse(b.graph()))


def _norm(b: Builder, x: int, name: str) -> int:
    width = b.tensors[x].shape[-1]
    weights = [b.parameter(f"{name}.weight", width), b.parameter(f"{name}.bias", width)]
    return b.apply("native_layer_norm", [x, *weights], b.tensors[x].shape, name, normalized_shape=[width])


def _block(b: Builder, x: int, name: str, shape: tuple[int, int, int], heads: int) -> int:
    batch, sequence, width = shape
    size = width // heads
    y = linear(b, _norm(b, x, f"{name}.norm1"), 3 * width, f"{name}.qkv")
    y = b.apply("view", [y], (batch, sequence, heads, 3 * size), f"{name}.view")
    parts = b.split("split", [y], [(batch, sequence, heads, size)] * 3, f"{name}.split", dim=3)
    places = (batch, heads, sequence, size)
    q, k, v = (b.apply("transpose", [t], places, f"{name}.transpose", dim0=1, dim1=2) for t in parts)
    k = b.apply("transpose", [k], (batch, heads, size, sequence), f"{name}.turn", dim0=2, dim1=3)
    square = (batch, heads, sequence, sequence)
    scores = b.apply(
        "_softmax", [b.apply("matmul", [q, k], square, f"{name}.scores")], square, f"{name}.softmax", dim=3
    )
    y = b.apply("matmul", [b.apply("dropout", [scores], square, f"{name}.drop"), v], places, f"{name}.context")
    y = b.apply("transpose", [y], (batch, sequence, heads, size), f"{name}.back", dim0=1, dim1=2)
    y = linear(b, b.apply("view", [y], shape, f"{name}.merge"), width, f"{name}.proj")
    x = _dropout_add(b, y, x, f"{name}.add1")
    y = linear(b, _norm(b, x, f"{name}.norm2"), 4 * width, f"{name}.up")
    y = linear(b, b.apply("gelu", [y], b.tensors[y].shape, f"{name}.gelu"), width, f"{name}.down")
    return _dropout_add(b, y, x, f"{name}.add2")


def _dropout_add(b: Builder, y: int, x: int, name: str) -> int:
    """One fused kernel: reads branch and residual, writes the sum and a mask; backward reads and writes once."""
    shape, size = b.tensors[x].shape, b.tensors[x].size_bytes
    out = b.tensor(name, shape)
    costs = Costs(bytes_forward=3.5 * size, bytes_backward=2.5 * size, saved_extra_bytes=size // 2)
    b.add(name, Call("add", (shape, shape), (shape,)), [y, x], [out], costs, "")
    return out


def megatron_plan(*, sequence_parallel: bool) -> Restriction:
    """Tensor parallel along features and heads; what lies between products along the sequence, or whole."""

    def restrict(op: Op, table: Ints) -> Ints:
        if op.family in {Family.NORM, Family.ELEMENTWISE, Family.DROPOUT}:
            allowed = [i for i, loop in enumerate(op.loops) if loop.role is LoopRole.SEQUENCE and sequence_parallel]
            allowed = allowed or [NONE]
        else:
            across = {LoopRole.BATCH, LoopRole.SEQUENCE}
            allowed = [NONE, *(i for i, loop in enumerate(op.loops) if loop.role not in across)]
        return table[np.isin(table, allowed).all(axis=1)]

    return restrict


def predict(case: Case, mode: Recompute) -> Outcome:
    """Megatron's plan for a row, priced: full recompute without, selective recompute with sequence parallelism."""
    graph, cluster = build(case), ClusterSpec.parse(f"{case.devices // 8}x8xA100-80GB")
    selective = mode is Recompute.SELECTIVE
    replicas = case.devices // case.tensor // case.stages
    context = SearchContext(
        graph=graph,
        chain=chain_of(graph),
        cluster=cluster,
        settings=Settings(
            assumptions=Assumptions(Optimizer(gradient_bytes=4)), state_shardings=(StateSharding(ZeroLevel.NONE),)
        ),
        modes=(mode,),
        limit_bytes=inf,
        analysis=analyse_graph(graph),
        compute_lower_bound=compute_lower_bound(graph, cluster, Efficiency()),
        cache=TableCache(),
        restriction=megatron_plan(sequence_parallel=selective),
    )
    schedule = Schedule.INTERLEAVED if case.chunks > 1 else Schedule.ONE_F_ONE_B
    microbatches = case.batch // replicas // case.microbatch
    candidate = Candidate(case.stages, mesh_of((case.tensor,)), microbatches, schedule, case.chunks)
    result = solve_candidate(context, candidate)
    if result.outcome is None:
        raise SystemExit(f"{case.name} does not fit: {result.least_bytes / 1e9:.1f} GB")
    return result.outcome


def layer_activation_bytes(case: Case, mode: Recompute) -> float:
    """Bytes that one layer keeps per microbatch under tensor and sequence parallelism."""
    graph = build(case)
    run, analysis = graph.repeated_blocks[0], analyse_graph(graph)
    replicas = case.devices // case.tensor // case.stages
    model = CostModel(
        graph,
        ClusterSpec.parse(f"{case.tensor}xA100-80GB"),
        mesh_of((case.tensor,)),
        case.batch // replicas // case.microbatch,
        analysis=analysis,
        restrict=megatron_plan(sequence_parallel=True),
    )
    chain = chain_of(graph)
    assert chain is not None
    problem = StageProblem(model, chain, run.count, TableCache(), modes=(mode,))
    plan = problem.solve(LagrangianWeights()).point.assignment
    return plan.pieces[1].breakdown.act_bytes


def main() -> None:
    for case in CASES:
        for mode, measured in ((Recompute.FULL, case.full_s), (Recompute.SELECTIVE, case.selective_s)):
            outcome = predict(case, mode)
            cost = cost_of(outcome)
            error = cost.step_s / measured - 1
            print(
                f"{case.name:5} {mode:10} predicted {cost.step_s:6.2f} s, published {measured:6.2f} s, {error:+6.1%} "
                f"(compute {cost.compute_s:.2f}, communication {cost.communication_s:.2f}, bubble {cost.bubble_s:.2f}, "
                f"optimizer {cost.optimizer_s:.2f}; {cost.peak_memory_bytes / 2**30:.1f} GiB)"
            )


if __name__ == "__main__":
    main()
