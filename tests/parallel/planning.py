"""The executed rows of the table of choices, as plans of the models."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from jupyter_autotrain.parallel import api
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


def tensor_planned(model, row, count):
    network = training.TENSOR_MODELS[model]()
    words = {"search": "recursive_programming", "pins": TENSOR_ROWS[row]}
    return api.plan(network, training.example(model), f"{count}xA100", **words)


@cache
def planned(model, row, count):
    if row in TENSOR_ROWS:
        return tensor_planned(model, row, count)
    pins = ROWS[row] if model != "cnn" else {"zero": ROWS[row]["zero"]}
    network = training.MODELS[model]()
    words = {"mode": "data_parallel", "search": "recursive_programming"}
    return api.plan(network, training.example(model), f"{count}xA100", pins=pins, **words)


def replicas(row):
    """Groups of ranks that hold all shards."""
    return HSDP_REPLICAS if row == "HSDP" else 1
