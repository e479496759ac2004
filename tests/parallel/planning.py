"""The executed rows of the table of choices, as plans of the models."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

import pytest

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.cost.memory import Schedule
from jupyter_autotrain.parallel.plan import Megatron
from tests.parallel import training

ROWS = {
    "DDP": {"zero": 0},
    "DDP, accumulated": {"zero": 0, "microbatches": 2},
    "DDP, recomputed": {"zero": 0, "recompute": "full"},
    "ZeRO-1": {"zero": 1},
    "ZeRO-1, accumulated": {"zero": 1, "microbatches": 2},
    "ZeRO-2, accumulated": {"zero": 2, "microbatches": 2},
    "FSDP": {"zero": 3},
    "FSDP, recomputed, accumulated": {"zero": 3, "recompute": "full", "microbatches": 2},
    "FSDP, attention recomputed": {"zero": 3, "recompute": "selective"},
    "HSDP": {"zero": 3},
}
HSDP_REPLICAS = 2


@dataclass(frozen=True, slots=True)
class Layers(Megatron):
    """Layers split as Megatron does, but for experts and what chooses among them."""

    def pins(self, traced, fused, cluster):
        found = Megatron.pins(self, traced, fused, cluster)
        experts = [op.name for op in fused.ops if ".experts." in op.name or ".mlp.gate." in op.name]
        whole = {}
        for name in experts:
            way = next(way for pattern, way in found.ops.items() if fnmatchcase(name, pattern))
            whole[name] = (*way[:-1], None)
        return replace(found, ops={**whole, **found.ops})


TENSOR_ROWS = {
    "tensor": Layers(tensor=2),
    "tensor, recomputed": Layers(tensor=2, recompute="full"),
    "tensor, accumulated": Layers(tensor=2, microbatches=2),
    "tensor and sequence": Layers(tensor=2, sequence_parallel=True),
    "tensor and sequence, recomputed": Layers(tensor=2, sequence_parallel=True, recompute="full"),
    "ZeRO-1, tensor": Layers(tensor=2, zero=1),
    "FSDP, tensor": Layers(tensor=2, zero=3),
    "FSDP, tensor and sequence, recomputed, accumulated": Layers(
        tensor=2, sequence_parallel=True, zero=3, recompute="full", microbatches=2
    ),
}


EXPERT_ROWS = {
    "expert": {"zero": 0},
    "expert, accumulated": {"zero": 0, "microbatches": 2},
    "ZeRO-1, expert": {"zero": 1},
    "ZeRO-2, expert, accumulated": {"zero": 2, "microbatches": 2},
    "FSDP, expert": {"zero": 3},
    "FSDP, expert, recomputed, accumulated": {"zero": 3, "recompute": "full", "microbatches": 2},
}


def expert_planned(model, row, count, ways=2):
    """Return a plan whose innermost axis splits experts, and samples elsewhere."""
    outer = ("batch",) if count > ways else ()
    pins = {"mesh": (count // ways, ways) if outer else (ways,), **EXPERT_ROWS[row]}
    pins["ops"] = {"*.experts.experts": (*outer, "e"), "*": (*outer, "batch")}
    words = {"search": "recursive_programming", "pins": pins}
    return api.plan(training.network(model), training.example(model), f"{count}xA100", **words)


PIPELINE_ROWS = {
    "GPipe": ({"pipeline": 2, "microbatches": 2}, Schedule.GPIPE),
    "1F1B": ({"pipeline": 2, "microbatches": 4}, None),
    "1F1B, fewer microbatches than stages": ({"pipeline": 2, "microbatches": 1}, None),
    "1F1B, recomputed": ({"pipeline": 2, "microbatches": 4, "recompute": "full"}, None),
    "interleaved": ({"pipeline": 2, "microbatches": 4, "interleaved": True}, None),
    "1F1B of 4": ({"pipeline": 4, "microbatches": 8}, None),
    "1F1B, DDP": ({"pipeline": 2, "data": 2, "microbatches": 4, "zero": 0}, None),
    "1F1B, ZeRO-1": ({"pipeline": 2, "data": 2, "microbatches": 2, "zero": 1}, None),
    "1F1B, FSDP": ({"pipeline": 2, "data": 2, "microbatches": 4, "zero": 3}, None),
    "interleaved, FSDP": ({"pipeline": 2, "data": 2, "microbatches": 2, "zero": 3, "interleaved": True}, None),
    "GPipe, FSDP, recomputed": (
        {"pipeline": 2, "data": 2, "microbatches": 2, "zero": 3, "recompute": "full"},
        Schedule.GPIPE,
    ),
}
SHARED_STAGES = {
    "1F1B, tensor": ({"pipeline": 2, "tensor": 2, "microbatches": 4}, None),
    "GPipe, tensor and sequence, recomputed": (
        {"pipeline": 2, "tensor": 2, "sequence_parallel": True, "microbatches": 2, "recompute": "full"},
        Schedule.GPIPE,
    ),
    "interleaved, tensor and sequence": (
        {"pipeline": 2, "tensor": 2, "sequence_parallel": True, "microbatches": 2, "interleaved": True},
        None,
    ),
    "1F1B, FSDP, tensor and sequence": (
        {"pipeline": 2, "tensor": 2, "sequence_parallel": True, "data": 2, "microbatches": 4, "zero": 3},
        None,
    ),
}
STAGED_ROWS = PIPELINE_ROWS | SHARED_STAGES


def ranks_of(row):
    """Return processes of a row with pipeline stages."""
    degrees, _ = STAGED_ROWS[row]
    return degrees["pipeline"] * degrees.get("data", 1) * degrees.get("tensor", 1)


def skip_beyond(model, row):
    """Skip stages that a model does not have."""
    if model.startswith("Blocks") and row.startswith(("interleaved", "1F1B of 4")):
        pytest.skip("the graph has three equal blocks: the head is fused with the last layer")
    if model.endswith("5 layers") and row.startswith("interleaved"):
        pytest.skip("chunks are of equal numbers of layers")
    if "tensor" in row and model.startswith("bloom"):
        pytest.skip("its heads are shaped so that a tensor axis does not run")
    if "sequence" in row and model.startswith("Blocks"):
        pytest.skip("its layers shape heads by the positions of their input")


@dataclass(frozen=True, slots=True)
class Stages(Megatron):
    """Stages as Megatron has them, under any schedule."""

    schedule: Schedule | None = None

    def pins(self, traced, fused, cluster):
        found = Megatron.pins(self, traced, fused, cluster)
        return replace(found, schedule=self.schedule or found.schedule)


@cache
def staged(model, row):
    degrees, schedule = STAGED_ROWS[row]
    words = {"search": "recursive_programming", "pins": Stages(**degrees, schedule=schedule)}
    return api.plan(training.network(model), training.example(model), f"{ranks_of(row)}xA100", **words)


def tensor_planned(model, row, count):
    network = training.network(model)
    words = {"search": "recursive_programming", "pins": TENSOR_ROWS[row]}
    return api.plan(network, training.example(model), f"{count}xA100", **words)


@cache
def planned(model, row, count):
    if row in TENSOR_ROWS:
        return tensor_planned(model, row, count)
    if row in EXPERT_ROWS:
        return expert_planned(model, row, count)
    pins = ROWS[row] if model != "cnn" else {"zero": ROWS[row]["zero"]}
    network = training.network(model)
    words = {"mode": "data_parallel", "search": "recursive_programming"}
    return api.plan(network, training.example(model), f"{count}xA100", pins=pins, **words)


def replicas(row):
    """Return the groups of ranks that hold all shards."""
    return HSDP_REPLICAS if row == "HSDP" else 1
