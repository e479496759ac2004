"""A graph that is resized is the graph of the model with other inputs."""

import math

import pytest

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.graph.resize import Extent, extent_of, resized
from tests.example_graphs import gpt, llama

SMALL = {"width": 64, "layers": 2, "heads": 4, "vocabulary": 256}
WORDS = {"vocab_size": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXTENTS = [(32, 16), (4, 64)]


def alike(found, expected, share):
    check(found)
    for key in ("flops_forward", "flops_backward", "saved_extra_bytes"):
        assert sum(getattr(op, key) for op in found.ops) == pytest.approx(
            sum(getattr(op, key) for op in expected.ops), rel=1e-6
        )
    words = {"cluster": "2xA100", "search": "recursive_programming"}
    mine, other = (api.plan(graph, None, **words).cost for graph in (found, expected))
    assert mine.step_s == pytest.approx(other.step_s, rel=share)
    assert mine.peak_memory_bytes == pytest.approx(other.peak_memory_bytes, rel=share)


@pytest.mark.parametrize(("batch", "sequence"), EXTENTS)
def test_a_built_graph_grows_to_the_one_of_other_inputs(batch, sequence):
    graph = prepare(llama(batch=8, sequence=16, hidden=128, **SMALL))
    found = resized(graph, Extent(batch, sequence))
    assert extent_of(found) == Extent(batch, sequence)
    alike(found, prepare(llama(batch=batch, sequence=sequence, hidden=128, **SMALL)), 0.02)


def traced(kind, batch, sequence):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    ids = torch.zeros(batch, sequence, dtype=torch.long)
    inputs = {"input_ids": ids, "labels": ids}
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, **WORDS))
    else:
        sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, **WORDS))
    from jupyter_autotrain.parallel.trace import trace

    return prepare(trace(model, inputs))


@pytest.mark.parametrize("kind", ["gpt2", pytest.param("t5", marks=pytest.mark.long)])
def test_a_traced_graph_grows_to_the_one_of_other_inputs(kind):
    graph = traced(kind, 8, 16)
    for batch, sequence in EXTENTS:
        alike(resized(graph, Extent(batch, sequence)), traced(kind, batch, sequence), 0.005)


def test_a_model_with_weights_for_each_position_has_no_sequence_to_change():
    graph = prepare(gpt(batch=8, sequence=16, **SMALL))
    assert extent_of(graph) == Extent(8, None)
    assert resized(graph, Extent(8, 64)) is graph


def test_work_of_attention_grows_with_the_square_of_the_sequence():
    graph = prepare(llama(batch=8, sequence=16, hidden=128, **SMALL))
    grown = resized(graph, Extent(None, 64))
    ratios = [b.flops_forward / a.flops_forward for a, b in zip(graph.ops, grown.ops, strict=True) if a.flops_forward]
    assert set(map(math.log2, ratios)) == {2.0, 4.0}
