"""Validates a graph that was not made by `Builder` (a file, a test, an import)."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Op, Operand, OpGraph


def check(graph: OpGraph) -> OpGraph:
    """Return the graph if every op can be priced and the ops are in an order in which they can run.

    Time linear in the graph.

    Raises:
        PlanError: Ids that are not positions, tensors or loops that do not exist, dims that no loop divides, an op that
            needs a later one's output (a cycle, or a wrong order), runs that leave the graph or overlap.
    """
    fault = next(_faults(graph), None)
    if fault is not None:
        found, expected, action = fault
        raise PlanError(found, expected, action)
    return graph


def _faults(graph: OpGraph) -> Iterator[tuple[str, str, str]]:
    yield from _tensor_faults(graph)
    made: set[int] = set()
    later = {operand.tensor for op in graph.ops for operand in op.outputs}
    for place, op in enumerate(graph.ops):
        yield from _op_faults(graph, op, place)
        yield from _order_faults(graph, op, made, later)
        made.update(operand.tensor for operand in op.outputs)
    yield from _run_faults(graph)


def _tensor_faults(graph: OpGraph) -> Iterator[tuple[str, str, str]]:
    for place, tensor in enumerate(graph.tensors):
        if tensor.id != place:
            yield _fault(f"Tensor {tensor.name!r} has id {tensor.id} at position {place}.", "Ids are positions.")
        if tensor.dtype not in DTYPE_BYTES:
            yield _fault(f"Tensor {tensor.name!r} has the type {tensor.dtype!r}.", f"Known: {', '.join(DTYPE_BYTES)}.")
        if any(size < 0 for size in tensor.shape):
            yield _fault(f"Tensor {tensor.name!r} has the shape {tensor.shape}.", "Sizes are not negative.")


def _op_faults(graph: OpGraph, op: Op, place: int) -> Iterator[tuple[str, str, str]]:
    if op.id != place:
        yield _fault(f"Op {op.name!r} has id {op.id} at position {place}.", "Ids are positions.")
    for operand in (*op.inputs, *op.outputs):
        if not 0 <= operand.tensor < len(graph.tensors):
            yield _fault(f"Op {op.name!r} uses tensor {operand.tensor}.", f"There are {len(graph.tensors)} tensors.")
        elif not _fits(graph, op, operand):
            shape = graph.tensors[operand.tensor].shape
            sizes = [loop.size for loop in op.loops]
            yield _fault(
                f"Op {op.name!r} runs a tensor of shape {shape} along loops {operand.loops} of sizes {sizes}.",
                "Each dim runs along no loop, or along one whose size divides it.",
            )
    if any(not 0 <= tensor < len(graph.tensors) for tensor in op.saved):
        yield _fault(f"Op {op.name!r} saves tensors {op.saved}.", f"There are {len(graph.tensors)} tensors.")


def _fits(graph: OpGraph, op: Op, operand: Operand) -> bool:
    shape = graph.tensors[operand.tensor].shape
    if len(shape) != len(operand.loops):
        return False
    return all(
        loop is None or (0 <= loop < len(op.loops) and size % max(1, op.loops[loop].size) == 0)
        for size, loop in zip(shape, operand.loops, strict=True)
    )


def _order_faults(graph: OpGraph, op: Op, made: set[int], later: set[int]) -> Iterator[tuple[str, str, str]]:
    for operand in op.inputs:
        if operand.tensor in later and operand.tensor not in made:
            maker = graph.ops[graph.producers[operand.tensor]].name
            yield (
                f"Op {op.name!r} needs {graph.tensors[operand.tensor].name!r}, which {maker!r} makes only after it.",
                "A graph has no cycle, and each op stands after those whose outputs it reads.",
                "Sort the ops, or cut the cycle (unroll a recurrence into one op per step).",
            )
    for operand in op.outputs:
        if operand.tensor in made:
            yield _fault(f"Op {op.name!r} makes tensor {operand.tensor} again.", "One op makes each tensor.")


def _run_faults(graph: OpGraph) -> Iterator[tuple[str, str, str]]:
    end = 0
    for run in graph.repeated_blocks:
        stop = run.start + run.length * run.count
        if run.start < end or run.length < 1 or run.count < 1 or stop > len(graph.ops):
            yield _fault(
                f"The block run at op {run.start} ends at {stop}.", "Runs lie in the graph and do not overlap."
            )
        end = stop


def _fault(found: str, expected: str) -> tuple[str, str, str]:
    return found, expected, "Build the graph with trace() or Builder, or correct the file."
