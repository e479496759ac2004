"""An `OpGraph` as JSON and back, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.graph import (
    BlockRun,
    Family,
    Loop,
    LoopRole,
    Member,
    Op,
    Operand,
    OpGraph,
    Tensor,
    TensorKind,
)

VERSION = 1

Record = Mapping[str, Any]  # a JSON object


def to_json(graph: OpGraph) -> str:
    """The graph as one JSON text."""
    fields = {**asdict(graph), "meta": dict(graph.meta), "version": VERSION}
    return json.dumps(fields, separators=(",", ":"))


def from_json(text: str) -> OpGraph:
    """The graph of a JSON text, checked.

    Raises:
        PlanError: Not JSON, another version, or a malformed graph.
    """
    expected = f"A graph written by to_json, version {VERSION}."
    action = "Trace the model again and save the graph anew."
    try:
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("version") != VERSION:
            raise PlanError("The text is no graph of this version.", expected, action)
        graph = _graph(record)
    except (ValueError, TypeError, KeyError) as fault:
        raise PlanError(f"The graph cannot be read: {fault}.", expected, action) from fault
    return check(graph)


def _graph(record: Record) -> OpGraph:
    return OpGraph(
        ops=tuple(_op(op) for op in record["ops"]),
        tensors=tuple(_tensor(tensor) for tensor in record["tensors"]),
        name=record["name"],
        runs=tuple(BlockRun(**run) for run in record["runs"]),
        unknown=tuple(record["unknown"]),
        tied=tuple((a, b) for a, b in record["tied"]),
        meta=dict(record["meta"]),
        uncut=str(record.get("uncut", "")),
    )


def _tensor(record: Record) -> Tensor:
    return Tensor(**{**record, "shape": tuple(record["shape"]), "kind": TensorKind(record["kind"])})


def _op(record: Record) -> Op:
    return Op(
        **{
            **record,
            "family": Family(record["family"]),
            "loops": tuple(Loop(**{**loop, "role": LoopRole(loop["role"])}) for loop in record["loops"]),
            "inputs": _operands(record["inputs"]),
            "outputs": _operands(record["outputs"]),
            "saved": tuple(record["saved"]),
            "members": tuple(Member(member["name"], tuple(member["loops"])) for member in record["members"]),
        }
    )


def _operands(records: Sequence[Record]) -> tuple[Operand, ...]:
    return tuple(Operand(record["tensor"], tuple(record["loops"])) for record in records)
