"""Tests that what all layers read does not belong to the layer that makes it."""

from jupyter_autotrain.parallel.api import plan
from jupyter_autotrain.parallel.graph import prepare as preparation
from jupyter_autotrain.parallel.graph.builder import Builder
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.prepare import fold, hoisted, prepare
from tests.example_graphs import random_graph


def layered(readers):
    """Four layers; the first makes a table that the given layers mix in."""
    b = Builder("shared", "float32")
    x = b.input("x", 8, 16)
    places = b.input("places", 8, dtype="int64")
    for i in range(4):
        x = b.apply("linear", [x, b.parameter(f"layers.{i}.up.weight", 16, 16)], (8, 16), f"layers.{i}.up")
        if i == 0:
            rows = [b.parameter("layers.0.bias.weight", 32, 16), places]
            bias = b.apply("embedding", rows, (8, 16), "layers.0.bias")
        if i in readers:
            x = b.apply(
                "mm",
                [x, b.apply("transpose", [bias], (16, 8), f"layers.{i}.t", dim0=0, dim1=1)],
                (8, 8),
                f"layers.{i}.mix",
            )
            x = b.apply("linear", [x, b.parameter(f"layers.{i}.mixed.weight", 16, 8)], (8, 16), f"layers.{i}.mixed")
        x = b.apply("_softmax", [x], (8, 16), f"layers.{i}.softmax", dim=-1)
    return b.graph()


def test_an_op_that_all_layers_read_moves_before_the_first():
    graph = layered(range(4))
    assert [run.count for run in fold(fuse(graph)).repeated_blocks] != [4]
    found = check(prepare(graph))
    assert [run.count for run in found.repeated_blocks] == [4]
    assert found.ops[found.repeated_blocks[0].start - 1].name == "layers.0.bias"
    assert found.repeated_blocks[0].name == "layers.0"


def test_an_op_that_only_its_own_layer_reads_stays():
    graph = fuse(layered([0]))
    assert hoisted(graph) is graph


def test_nothing_is_lost_or_made_twice():
    graph = fuse(layered(range(4)))
    moved = hoisted(graph)
    assert sorted(op.name for op in moved.ops) == sorted(op.name for op in graph.ops)
    assert [op.id for op in moved.ops] == list(range(len(graph.ops)))


def test_a_plan_prepares_its_graph_once(monkeypatch):
    calls = []
    monkeypatch.setattr(preparation, "fold", lambda graph: calls.append(graph) or fold(graph))
    found = plan(random_graph(1, ops=8), None, "2xA100", search="recursive_programming")
    found.what_if(bandwidth=0.5)
    assert len(calls) == 1
