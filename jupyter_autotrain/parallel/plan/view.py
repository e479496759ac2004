"""A plan as plain JSON values for anything that draws it: the preview widget, the static page, other programs.

Keys of `view(record)` (seconds end in `_s`, bytes in `_bytes`; an axis index counts `mesh.axes`, outermost first):

* `version` 1; `name` of the model; `plan`, the answer in one line; `mode`, `search`; `complete` (false: stopped early,
  best so far); `gap`, `bound_s`;
  `trace_s`, `search_s`; `limit_bytes` per rank; `unknown` kinds of ops that have no rule and are replicated, and
  `unsupported_work`: `{kind: share of the estimated work}` of them. `gap` is null where nothing is proved: no near
  bound, or more than 1 % of the work in them. `notes`: sentences that a reader must know to use the plan.
* `cluster`: `name`, `devices`, `device`, `memory_bytes` and what training can have of it, `usable_bytes`; `levels`,
  innermost first: `{name, size, kind, bytes_per_s}`.
* `mesh`: `axes` (equal names: tiers of one axis) and `shape` over the devices of one stage, `stages` (device number =
  stage * devices of a stage + coordinates on the axes, the last axis fastest).
* `microbatches`, `schedule` ("" without stages), `chunks`; `zero`: `{level: parameters}`; `recompute`:
  `{mode: blocks}`; `inputs`: `{batch, sequence}`, null where the graph does not tell.
* `cost`: `step_s`, `compute_s`, `communication_s` (what is exposed), `bubble_s`, `optimizer_s`, `peak_memory_bytes`,
  `sent_bytes` (by a rank in a step, of the stage that sends most).
* `candidates`, the table of plans, fastest first within its kind: `{name, kind: found | fastest | data | hybrid |
  other, what, fits, reason, step_s, compute_s, communication_s, bubble_s, optimizer_s, peak_memory_bytes,
  sent_bytes}` (null where a plan does not apply or fit; `reason` says why).
* `groups`: `{label, count}`; `nodes` of a group stand for `count` equal blocks in a row.
* `nodes`: `{id, op, label, family, kind, group (-1: none), count, stages, colour: data | sequence | tensor | expert |
  spatial | mixed | replica, split (per axis the role of the loop that is split, or null), loops (per axis its name, or
  null), zero, offload, host_table, recompute, flops (of a step, of one op), parameters (elements), syncs, tensors}`;
  `tensors` are ids of what the op reads of parameters and makes; `syncs` are collectives for its weights.
* `edges`: `{source, target (node ids), tensor, repeats (true: leads to the next block of the same group), bytes,
  forward, backward}`; `forward` and `backward` are collectives `{axis, what, sent_bytes, times}`, per microbatch.
* `tensors`: `{id, name, shape, local_shape, dtype, kind, placements (per axis "R", "P" or "S(dim)"), splits}`; `splits`
  in order, outermost first: `{axis, dim, parts}`. A rank with coordinate c on the axis holds slice c of `parts` along
  `dim`, of what the splits before it left; a rank holds everything of the dims that no split names.
* `timeline`: `{step_s, segments: [{stage, start_s, stop_s, what: forward | backward | communication | optimizer |
  bubble, microbatch}]}`; communication is what is exposed; segments of a stage leave no hole.
* `ranks`, one row per stage: `{stage, device, ranks, blocks, parameter_bytes, gradient_bytes, optimizer_bytes,
  activation_bytes, peak_bytes, limit_bytes, sent_bytes: {axis name or "pipeline": bytes a rank sends per step}}`.
* `code`: torch code; `caveats`: sentences, why they do not run as they stand (none where
  they do).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.parallel.cost.layout import Placements, Shard
from jupyter_autotrain.parallel.graph.graph import Op, Tensor, TensorKind
from jupyter_autotrain.parallel.graph.resize import extent_of
from jupyter_autotrain.parallel.plan.code import code
from jupyter_autotrain.parallel.plan.code_parts import caveats
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts, FoldedEdge
from jupyter_autotrain.parallel.plan.formatting import colour, label
from jupyter_autotrain.parallel.plan.modules import modules_of
from jupyter_autotrain.parallel.plan.plan_data import PlanData, weights_of
from jupyter_autotrain.parallel.plan.text_report import candidate_rows, cost_fields, rank_rows
from jupyter_autotrain.parallel.plan.timeline import timeline
from jupyter_autotrain.parallel.plan.traffic import edge_collectives, state_collectives

VERSION: Final = 1


def view(plan: PlanData) -> JsonObject:
    """Everything to draw; see the module's docstring for the keys."""
    costs = plan.decision_costs()
    folded = costs.folded
    solution = plan.solution
    drawn = _GraphView(costs)
    nodes = list(map(drawn.node, range(len(folded.nodes))))
    edges = list(map(drawn.edge, folded.edges))
    return {
        "version": VERSION,
        "name": plan.name,
        "plan": solution.name,
        "mode": str(plan.mode),
        "search": str(plan.request.search),
        "complete": solution.complete,
        "gap": plan.gap if isfinite(plan.gap) else None,
        "bound_s": solution.bound_s,
        "trace_s": plan.trace_s,
        "search_s": plan.search_s,
        "limit_bytes": solution.limit_bytes,
        "unknown": list(plan.unknown),
        "unsupported_work": dict(plan.unsupported_work),
        "notes": list(plan.notes),
        "cluster": _cluster(plan),
        "mesh": {"axes": list(plan.mesh.axes), "shape": plan.mesh.shape, "stages": len(plan.stages)},
        "microbatches": plan.microbatches,
        "schedule": str(plan.schedule) if len(plan.stages) > 1 else "",
        "chunks": plan.decision.chunks,
        "zero": {str(int(level)): count for level, count in plan.zero.items()},
        "recompute": {str(mode): count for mode, count in plan.recompute.items()},
        "inputs": to_json(extent_of(plan.graph)),
        "cost": cost_fields(plan.cost),
        "candidates": list(candidate_rows(plan)),
        "groups": cast("JsonObject", to_json(folded.groups)),
        "nodes": nodes,
        "edges": edges,
        "tensors": list(drawn.tensors.values()),
        "timeline": {
            "step_s": plan.cost.step_s,
            "segments": to_json(timeline(costs, plan.cost)),
        },
        "ranks": list(rank_rows(plan, costs)),
        "code": code(plan),
        "caveats": list(caveats(costs, modules_of(costs))),
    }


def _cluster(plan: PlanData) -> JsonObject:
    cluster = plan.cluster
    return {
        "name": str(cluster),
        "devices": cluster.devices,
        "device": cluster.device.name,
        "memory_bytes": cluster.device.memory_bytes,
        "usable_bytes": cluster.device.usable_bytes,
        "levels": [
            {
                "name": level.name,
                "size": level.size,
                "kind": str(level.link.kind),
                "bytes_per_s": level.link.bytes_per_s,
            }
            for level in cluster.levels
        ],
    }


class _GraphView:
    """Nodes and edges as JSON values; collects the tensors that they name."""

    def __init__(self, costs: DecisionCosts) -> None:
        self.costs = costs
        self.graph = costs.graph
        self.folded = costs.folded
        self.tensors: dict[int, JsonObject] = {}

    def node(self, number: int) -> JsonObject:
        node = self.folded.nodes[number]
        op = self.folded.first_op(node)
        decided = self.costs.op_decision(op)
        loops = decided.split_loops(op)
        roles = [loop.role if loop else None for loop in loops]
        stages = {self.costs.op_decision(self.graph.ops[i]).stage for i in node.ops}
        return {
            "id": number,
            "op": op.name,
            "label": label(op),
            "family": str(op.family),
            "kind": op.kind,
            "group": node.group,
            "count": len(node.ops),
            "stages": sorted(stages),
            "colour": colour(roles),
            "split": [str(role) if role else None for role in roles],
            "loops": [loop.name if loop else None for loop in loops],
            "zero": int(decided.states.zero),
            "offload": decided.states.offload,
            "host_table": decided.states.host_table,
            "recompute": str(decided.recompute),
            "flops": op.flops_forward + op.flops_backward,
            "parameters": sum(t.numel for t in weights_of(self.graph, op)),
            "syncs": to_json(list(state_collectives(self.costs, op))),
            "tensors": list(self._tensors(op)),
        }

    def edge(self, edge: FoldedEdge) -> JsonObject:
        forward, backward = edge_collectives(self.costs, edge)
        return {
            "source": edge.source,
            "target": edge.target,
            "tensor": self._shown(edge),
            "repeats": edge.repeats,
            "bytes": self.graph.tensors[edge.operand.tensor].size_bytes,
            "forward": to_json(forward),
            "backward": to_json(backward),
        }

    def _shown(self, edge: FoldedEdge) -> int:
        """Return the tensor of the op that stands for the edge's source, in the place of the one that is read."""
        graph = self.graph
        tensor = edge.operand.tensor
        made = [out.tensor for out in graph.ops[graph.producers[tensor]].outputs]
        return self.folded.first_op(self.folded.nodes[edge.source]).outputs[made.index(tensor)].tensor

    def _tensors(self, op: Op) -> Iterator[int]:
        for operand in op.inputs:
            tensor = self.graph.tensors[operand.tensor]
            if tensor.kind is not TensorKind.ACTIVATION:
                yield self._tensor(tensor, self.costs.input_placements(op, operand))
        for operand in op.outputs:
            tensor = self.graph.tensors[operand.tensor]
            yield self._tensor(tensor, self.costs.output_placements(op, operand))

    def _tensor(self, tensor: Tensor, placed: Placements) -> int:
        shape = self.costs.decision.mesh.shape
        local = list(tensor.shape)
        splits = []
        for axis, one in enumerate(placed):
            if isinstance(one, Shard):
                splits.append({"axis": axis, "dim": one.dim, "parts": shape[axis]})
                local[one.dim] //= shape[axis]
        self.tensors[tensor.id] = {
            "id": tensor.id,
            "name": tensor.name,
            "shape": tensor.shape,
            "local_shape": local,
            "dtype": tensor.dtype,
            "kind": str(tensor.kind),
            "placements": list(map(str, placed)),
            "splits": splits,
        }
        return tensor.id
