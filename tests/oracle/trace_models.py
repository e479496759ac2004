"""Models of several families, small, with inputs; and what a step of one really costs."""

import functools

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from jupyter_autotrain.parallel.trace import trace

transformers = pytest.importorskip("transformers")
LAYERS = 3


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny models run faster on one thread."""
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
            self.a = geometric.GCNConv(8, 16)
            self.b = geometric.GCNConv(16, 4)

        def forward(self, x, edges):
            return self.b(self.a(x, edges).relu(), edges)

    return Net(), (torch.randn(10, 8), torch.randint(0, 10, (2, 30)))


MODELS = {f.__name__: f for f in (mlp, resnet, gpt2, llama, qwen, mixtral, bert, vit, t5, encoder, gcn)}


@functools.cache
def made(name):
    """Return a model with inputs and its graph, traced once for all tests that only look."""
    torch.set_num_threads(1)
    model, inputs = MODELS[name]()
    return model, inputs, trace(model, inputs)


EXACT = ("mlp", "resnet", "gpt2", "llama", "bert", "vit", "gcn")


def call(model, inputs):
    if isinstance(inputs, dict):
        out = model(**inputs)
    else:
        out = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
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
