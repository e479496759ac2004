"""Traced models: their ops, FLOPs, kept bytes, repeated blocks; and what a trace leaves behind."""

import gc
import json
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import Family, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.prepare import fold, prepare
from jupyter_autotrain.parallel.trace import trace
from tests import example_graphs
from tests.oracle import trace_models
from tests.oracle.trace_models import (
    EXACT,
    LAYERS,
    LLAMA,
    MODELS,
    call,
    flops,
    gpt2,
    llama,
    made,
    really,
    saved_bytes,
    transformers,
)

one_thread = trace_models.one_thread  # for every test here


@pytest.mark.parametrize("name", MODELS)
def test_a_model_traces_to_a_graph_of_known_ops(name):
    _, _, graph = made(name)
    assert check(graph).unknown == ()
    assert from_json(OpGraph, json.loads(json.dumps(to_json(graph)))) == graph
    assert check(fold(fuse(graph)))
    assert flops(graph) > 0


@pytest.mark.parametrize("name", EXACT)
def test_flops_and_kept_bytes_are_those_of_a_real_step(name):
    model, inputs, graph = made(name)
    counted, kept = really(model.train(), inputs)
    assert flops(graph, without=(Family.ATTENTION,)) == counted  # the counter does not see the CPU's fused attention
    assert saved_bytes(graph) == pytest.approx(kept, rel=0.1)


def test_attention_costs_what_the_counter_says_of_fused_kernels():
    from torch.utils.flop_counter import sdpa_backward_flop, sdpa_flop

    (op,) = [op for op in made("llama")[2].ops if op.kind == "attention"][:1]
    q = (2, 4, 16, 16)
    k = (2, 4, 16, 16)
    v = (2, 4, 16, 16)
    assert op.flops_forward == sdpa_flop(q, k, v)
    assert op.flops_backward == sdpa_backward_flop(q, q, k, v)


def test_experts_cost_what_their_chosen_tokens_cost():
    graph = made("mixtral")[2]
    rows = 2 * 16 * 2  # two experts per token
    width = 64
    inner = 128
    (cost,) = {op.flops_forward for op in graph.ops if op.kind == "experts"}
    assert cost == 2 * rows * width * (2 * inner + inner)
    experts = [op for op in graph.ops if op.kind == "experts"]
    assert {op.flops_backward for op in experts} == {2 * cost}
    (along,) = [i for i, loop in enumerate(experts[0].loops) if loop.size == inner]
    assert [operand.loops.count(along) for operand in experts[0].inputs] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(("name", "most"), [("gpt2", 16), ("llama", 16), ("mixtral", 16), ("bert", 16), ("vit", 16)])
def test_all_layers_are_one_run_also_after_fusing(name, most):
    graph = made(name)[2]
    assert [run.count for run in graph.repeated_blocks if run.length > 8] == [LAYERS]
    (run,) = fold(fuse(graph)).repeated_blocks
    assert run.count == LAYERS
    assert run.length <= most


def test_an_encoder_decoder_is_two_runs():
    graph = check(prepare(made("t5")[2]))
    assert [run.count for run in graph.repeated_blocks] == [LAYERS] * 2
    for run in graph.repeated_blocks:
        (bias,) = [op for op in graph.ops[: run.start] if "relative_attention_bias" in op.name][-1:]
        assert bias.id == run.start - 1


def test_a_traced_gpt2_costs_what_the_built_one_costs():
    traced = made("gpt2")[2]
    built = example_graphs.gpt(width=64, layers=LAYERS, heads=4, sequence=16, batch=2, vocabulary=128, dtype="float32")
    assert flops(traced) == pytest.approx(flops(built), rel=0.01)


def test_tied_weights_are_one_tensor():
    graph = made("gpt2")[2]
    tables = [t for t in graph.tensors if t.kind is TensorKind.PARAMETER and t.shape == (128, 64)]
    assert len(tables) == 1


def test_the_model_and_its_modes_are_left_as_they_were():
    model, inputs = gpt2()
    model.eval()
    model.transformer.h[0].train()
    modes = [m.training for m in model.modules()]
    before = {k: v.clone() for k, v in model.state_dict().items()}
    trace(model, inputs)
    assert [m.training for m in model.modules()] == modes
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_seventy_billion_parameters_trace_without_memory():
    config = transformers.LlamaConfig(
        **{
            **LLAMA,
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
        },
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        block = {"input_ids": torch.zeros(4, 4096, dtype=torch.long), "labels": torch.zeros(4, 4096, dtype=torch.long)}
    graph = trace(model, block)
    (run,) = graph.repeated_blocks
    first = [graph.tensors[o.tensor] for op in graph.ops[run.start : run.start + run.length] for o in op.inputs]
    assert sum(t.numel for t in first if t.kind is TensorKind.PARAMETER) * 80 > 68e9
    assert {t.dtype for t in first if t.kind is TensorKind.PARAMETER} == {"bfloat16"}


def test_a_trace_leaves_nothing_behind():
    seen = []

    class Noting(nn.Linear):
        def forward(self, x):
            seen.extend(map(weakref.ref, (x, self.weight)))
            return super().forward(x)

    trace(Noting(4, 4), torch.randn(3, 4))
    gc.collect()
    assert len(seen) == 2
    assert all(ref() is None for ref in seen)


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated:FutureWarning")
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_models_own_checkpointing_is_left_out_and_noted(reentrant):
    model, inputs = llama()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    graph = trace(model, inputs)
    plain = made("llama")[2]
    assert "checkpointing" in graph.meta["note"]
    assert "note" not in plain.meta
    assert graph.ops == tuple(replace(op, source=found.source) for op, found in zip(plain.ops, graph.ops, strict=True))
    assert call(model.train(), inputs).requires_grad  # checkpointing is there again


def test_checkpointed_layers_of_ones_own_count_once():
    class Deep(nn.Module):
        def __init__(self, checkpointed):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
            self.checkpointed = checkpointed

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
            return x

    assert flops(trace(Deep(True), torch.randn(4, 8))) == flops(trace(Deep(False), torch.randn(4, 8))) > 0


def test_an_op_tells_where_in_the_model_it_comes_from():
    graph = made("resnet")[2]
    first = next(op for op in graph.ops if op.name.startswith("2."))
    assert first.source.startswith(trace_models.__file__)


def test_a_change_through_a_view_reaches_the_tensor_behind_it():
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            y = torch.zeros_like(x)
            y[:, 1:] = self.inner(x)[:, 1:]
            return y * 2

    graph = trace(Writing(), torch.randn(3, 4))
    kinds = [op.kind for op in graph.ops]
    assert kinds.index("linear") < kinds.index("mul")


def test_unknown_ops_are_listed_and_replicated():
    class Spectral(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x)

    graph = trace(Spectral(), torch.randn(4, 8, 8, requires_grad=True))
    assert graph.unknown == ("_linalg_eigh",)
    assert all(op.loops == () for op in graph.ops if op.family is Family.UNKNOWN)
