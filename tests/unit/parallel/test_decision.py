"""A decision says everything that executing a plan needs, and comes back from JSON as itself."""

import json
from dataclasses import FrozenInstanceError
from math import prod

import pytest

from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.parallel.api import plan
from jupyter_autotrain.parallel.cost.layout import Partial, Shard
from jupyter_autotrain.parallel.decision import Decision
from tests.example_graphs import gpt

PINS = {
    "tensor parallel": {"mesh": (2, 4), "ops": {"h.*.mlp.c_fc": ("batch", "feature")}, "zero": 1},
    "fully sharded": {"mesh": (8,), "zero": 3, "recompute": "full"},
    "pipeline": {"stages": 2, "microbatches": 4, "mesh": (4,), "schedule": "interleaved"},
}


@pytest.fixture(scope="module", params=PINS)
def found(request):
    graph = gpt(width=256, layers=8, heads=8, sequence=128, batch=16, vocabulary=1024)
    return plan(graph, None, "8xA100", search="recursive_programming", pins=PINS[request.param])


def slices(placements, mesh, dim):
    """Parts that the mesh cuts a tensor dim into."""
    return prod(size for size, one in zip(mesh.shape, placements, strict=True) if one == Shard(dim))


def test_a_decision_comes_back_from_json_as_itself(found):
    assert from_json(Decision, json.loads(json.dumps(to_json(found.decision)))) == found.decision


def test_a_decision_cannot_be_changed(found):
    with pytest.raises(FrozenInstanceError):
        found.decision.microbatches = 1
    with pytest.raises(FrozenInstanceError):
        next(iter(found.decision.ops.values())).stage = 1


def test_every_input_parameter_and_output_has_a_placement_that_divides_it(found):
    for op in found.graph.ops:
        decided = found.decision.ops[op.name]
        assert len(decided.loops) == len(found.mesh.shape)
        assert len(decided.inputs) == len(decided.input_gradients) == len(op.inputs)
        assert len(decided.outputs) == len(op.outputs)
        operands = zip((*op.inputs, *op.outputs), (*decided.inputs, *decided.outputs), strict=True)
        for operand, placements in operands:
            for dim, size in enumerate(found.graph.tensors[operand.tensor].shape):
                assert size % slices(placements, found.mesh, dim) == 0


def test_the_gradient_of_an_input_is_partial_over_the_split_loops_that_it_lacks(found):
    for op in found.graph.ops:
        decided = found.decision.ops[op.name]
        for operand, placements in zip(op.inputs, decided.input_gradients, strict=True):
            lacking = [loop is not None and loop not in operand.loops for loop in decided.loops]
            assert [isinstance(one, Partial) for one in placements] == lacking


def test_stages_hold_consecutive_ops_and_all_blocks(found):
    numbers = [found.decision.ops[op.name].stage for op in found.graph.ops]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(found.decision.stages)))
    assert sum(stage.blocks for stage in found.decision.stages) == 8


def test_what_is_pinned_is_decided(found):
    pins = found.request.pins
    if pins.zero is not None:
        assert {one.states.zero for one in found.decision.ops.values()} == {pins.zero}
    if pins.recompute:
        assert found.recompute == {pins.recompute: 8}
    if pins.stages:
        assert len(found.decision.stages) == pins.stages
        assert (found.decision.microbatches, found.decision.schedule) == (4, "interleaved")
        assert found.decision.chunks > 1
