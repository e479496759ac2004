import functools
import gc
import json
import weakref
from collections import namedtuple
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from jupyter_autotrain.core.json import from_json, to_json
from jupyter_autotrain.errors import TraceError
from jupyter_autotrain.parallel.graph import example_graphs
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.fold import fold
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import Family, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.trace import trace

transformers = pytest.importorskip("transformers")
LAYERS = 3


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        y = torch.relu_(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        y += x
        return torch.relu_(y)


def ids(batch=2, length=16):
    return torch.arange(batch * length).view(batch, length) % 100 + 1


def causal():
    return {"input_ids": ids(), "labels": ids()}


LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BERT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
GPT2 = {"n_layer": LAYERS, "n_embd": 64, "n_head": 4, "vocab_size": 128, "n_positions": 16, "bos_token_id": 1}
QUIET = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "eos_token_id": 2, "loss_type": "ForCausalLM"}


def mlp():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(6, 8)


def resnet():
    body = [nn.Conv2d(3, 16, 7, 2, 3), nn.MaxPool2d(3, 2, 1), *(Block(16) for _ in range(LAYERS))]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), torch.randn(4, 3, 32, 32)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, **QUIET)), causal()


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)), causal()


def qwen():
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**LLAMA)), causal()


def mixtral():
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**LLAMA, num_local_experts=4)), causal()


def bert():
    model = transformers.BertForMaskedLM(transformers.BertConfig(**BERT, vocab_size=128))
    return model, {**causal(), "attention_mask": torch.ones(2, 16, dtype=torch.long)}


def vit():
    config = transformers.ViTConfig(**BERT, image_size=32, patch_size=8, num_labels=5)
    inputs = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.zeros(2, dtype=torch.long)}
    return transformers.ViTForImageClassification(config), inputs


def t5():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": LAYERS, "num_heads": 4, "vocab_size": 128}
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(**sizes, decoder_start_token_id=0, dropout_rate=0.0)
    ), causal()


def encoder():
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), torch.randn(16, 2, 64)


def gcn():
    geometric = pytest.importorskip("torch_geometric.nn")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = geometric.GCNConv(8, 16), geometric.GCNConv(16, 4)

        def forward(self, x, edges):
            return self.b(self.a(x, edges).relu(), edges)

    return Net(), (torch.randn(10, 8), torch.randint(0, 10, (2, 30)))


MODELS = {f.__name__: f for f in (mlp, resnet, gpt2, llama, qwen, mixtral, bert, vit, t5, encoder, gcn)}


@functools.cache
def made(name):
    """A model with inputs and its graph, traced once for all tests that only look."""
    torch.set_num_threads(1)
    model, inputs = MODELS[name]()
    return model, inputs, trace(model, inputs)


EXACT = ("mlp", "resnet", "gpt2", "llama", "bert", "vit", "gcn")


def call(model, inputs):
    out = (
        model(**inputs) if isinstance(inputs, dict) else model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    )
    return out.loss if hasattr(out, "loss") else out.sum()


def really(model, inputs):
    """FLOPs by torch's counter and bytes kept by autograd hooks, of a step that is really taken."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    counter = FlopCounterMode(display=False)
    with counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        call(model, inputs).backward()
    return counter.get_total_flops(), sum(size for size, _ in kept.values())


def saved_bytes(graph):
    named = {t for op in graph.ops for t in op.saved}
    return sum(graph.tensors[t].size_bytes for t in named) + sum(op.saved_extra_bytes for op in graph.ops)


def flops(graph, *, without=()):
    return sum(op.flops_forward + op.flops_backward for op in graph.ops if op.family not in without)


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
    q, k, v = (2, 4, 16, 16), (2, 4, 16, 16), (2, 4, 16, 16)
    assert op.flops_forward == sdpa_flop(q, k, v)
    assert op.flops_backward == sdpa_backward_flop(q, q, k, v)


def test_experts_cost_what_their_chosen_tokens_cost():
    graph = made("mixtral")[2]
    rows, width, inner = 2 * 16 * 2, 64, 128  # two experts per token
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


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x)
        if y.sum() > 0:  # the line that is named
            return y
        return -y


class Choosing(nn.Module):
    def forward(self, x):
        return x[x > 0] * 2  # the line that is named


@pytest.mark.parametrize("model", [Branching(), Choosing()])
def test_a_course_that_depends_on_values_names_the_line(model):
    with pytest.raises(TraceError) as caught:
        trace(model, torch.randn(3, 4))
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    wanted = [n for n, line in enumerate(lines, 1) if line.endswith("# the line that is named")]
    assert any(f"{__file__}:{n}:" in caught.value.found for n in wanted)
    assert caught.value.expected
    assert caught.value.action
    assert len(str(caught.value).splitlines()) <= 6


def test_a_branch_on_an_integer_input_is_refused_too():
    class Peeking(nn.Module):
        def forward(self, x):
            return x.float() if (x == 0).any() else x.float() * 2

    with pytest.raises(TraceError, match="depends on the values"):
        trace(Peeking(), torch.arange(4))


def test_a_model_that_fails_says_where():
    with pytest.raises(TraceError, match="raises RuntimeError") as caught:
        trace(nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 5))
    assert caught.value.action


def test_outputs_that_make_no_loss_are_refused():
    class Counting(nn.Module):
        def forward(self, x):
            return (x > 0).sum()

    with pytest.raises(TraceError, match="without a floating point tensor"):
        trace(Counting(), torch.randn(3))


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated:FutureWarning")
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_models_own_checkpointing_is_left_out_and_noted(reentrant):
    model, inputs = llama()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    graph, plain = trace(model, inputs), made("llama")[2]
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


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    layers: tuple[dict[str, torch.Tensor], ...] = ()


class Returning(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.inner, self.form = nn.Linear(4, 4), form

    def forward(self, x):
        return self.form(self.inner(x))


@pytest.mark.parametrize(
    "form",
    [
        Output,
        lambda y: Output(y.detach(), y.sum()),
        lambda y: Output((y > 0).long(), None, ({"first": y},)),
        lambda y: {"count": 3, "parts": [Output(y)]},
        lambda y: namedtuple("Pair", "a b")(y, None),
        lambda y: transformers.modeling_outputs.CausalLMOutput(logits=y),
        lambda y: transformers.modeling_outputs.CausalLMOutput(loss=y.mean(), logits=y),
        lambda y: torch.complex(y, y),
    ],
)
def test_a_loss_is_found_in_every_form_of_output(form):
    graph = trace(Returning(form), torch.randn(3, 4))
    assert graph.ops[0].kind == "linear"
    assert graph.ops[0].flops_backward > 0


def test_an_output_that_hides_its_tensors_is_called_what_it_is():
    class Opaque:
        def __init__(self, y):
            self.y = y

    with pytest.raises(TraceError, match="a Opaque, in which no tensors can be found") as caught:
        trace(Returning(Opaque), torch.randn(3, 4))
    assert "dataclass" in caught.value.expected
    graph = trace(Returning(Opaque), torch.randn(3, 4), loss_fn=lambda out: out.y.sum())
    assert graph.ops[0].kind == "linear"


@pytest.mark.parametrize("loss_fn", [lambda out: None, lambda out: out, lambda out: 3.0])
def test_a_loss_function_that_makes_no_number_is_refused(loss_fn):
    with pytest.raises(TraceError, match="The loss_fn returns"):
        trace(Returning(nn.Identity()), torch.randn(3, 4), loss_fn=loss_fn)


def test_a_loss_function_is_part_of_the_graph():
    target = torch.tensor([0, 1, 2, 3, 0, 1])
    model, inputs = mlp()
    graph = trace(model, inputs, loss_fn=lambda out: nn.functional.cross_entropy(out, target))
    assert [op.family for op in graph.ops[-2:]] == [Family.LOSS, Family.LOSS]


def test_an_op_tells_where_in_the_model_it_comes_from():
    graph = made("resnet")[2]
    first = next(op for op in graph.ops if op.name.startswith("2."))
    assert first.source.startswith(__file__)


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
