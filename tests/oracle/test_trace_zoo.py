"""Models of many kinds: every op of theirs has a rule, and work, or is known to move nothing."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.trace import trace
from jupyter_autotrain.parallel.trace.formulas import FREE

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
TINY = {**SMALL, "intermediate_size": 64}
WORDS = {"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
CODER = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "decoder_start_token_id": 1}
HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
VIEWS = {"view", "_unsafe_view", "transpose", "t", "permute", "expand", "slice", "select", "split", "split_with_sizes"}
VIEWS |= {
    "squeeze",
    "unsqueeze",
    "unbind",
    "view_as_real",
    "view_as_complex",
    "as_strided",
    "unfold",
    "_conj",
    "diagonal",
}
MOVES_NOTHING = FREE | VIEWS | {"slice_scatter"}  # the last is how a change through a view is written down
PRODUCTS = (Family.MATMUL, Family.CONVOLUTION, Family.ATTENTION, Family.MOE, Family.RECURRENT, Family.FOURIER)


def ids(batch=4, length=16):
    return torch.arange(batch * length).view(batch, length) % 99 + 1


def language(name, **settings):
    config = getattr(transformers, f"{name}Config")(**settings)
    kind = next(k for k in ("ForCausalLM", "ForMaskedLM", "LMHeadModel") if hasattr(transformers, f"{name}{k}"))
    return getattr(transformers, f"{name}{kind}")(config), {"input_ids": ids(), "labels": ids()}


def pictures(name, **settings):
    model = getattr(transformers, f"{name}ForImageClassification")(
        getattr(transformers, f"{name}Config")(num_labels=4, **settings)
    )
    return model, {"pixel_values": torch.randn(4, 3, 32, 32), "labels": torch.zeros(4, dtype=torch.long)}


def whisper():
    settings = {**CODER, **HEADS, **WORDS, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16}
    config = transformers.WhisperConfig(**settings, suppress_tokens=None, begin_suppress_tokens=None)
    inputs = {"input_features": torch.randn(4, 8, 32), "labels": ids(4, 8)}
    return transformers.WhisperForConditionalGeneration(config), inputs


def wav2vec2():
    kernels = {"conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
    positions = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
    config = transformers.Wav2Vec2Config(**TINY, **kernels, **positions, vocab_size=32, apply_spec_augment=False)
    return transformers.Wav2Vec2ForCTC(config), {"input_values": torch.randn(4, 400)}


def forecast():
    lags = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 16}
    config = transformers.TimeSeriesTransformerConfig(**lags, encoder_layers=1, decoder_layers=1)
    past = {"past_values": torch.randn(4, 10), "past_time_features": torch.randn(4, 10, 1)}
    future = {"future_values": torch.randn(4, 4), "future_time_features": torch.randn(4, 4, 1)}
    inputs = {**past, **future, "past_observed_mask": torch.ones(4, 10)}
    return transformers.TimeSeriesTransformerForPrediction(config), inputs


def mamba():
    return language("Mamba", hidden_size=32, num_hidden_layers=2, vocab_size=128, state_size=8)


def fnet():
    return language("FNet", hidden_size=32, intermediate_size=64, num_hidden_layers=2, vocab_size=128)


def deberta():
    return language("DebertaV2", **TINY, vocab_size=128, relative_attention=True, pos_att_type="p2c|c2p")


def llama4():
    sizes = {"num_key_value_heads": 2, "num_local_experts": 4, "head_dim": 8, "intermediate_size_mlp": 64}
    config = transformers.Llama4TextConfig(**TINY, **WORDS, **sizes)
    return transformers.Llama4ForCausalLM(config), {"input_ids": ids(), "labels": ids()}


def xlstm():
    return language("xLSTM", hidden_size=32, num_hidden_layers=2, num_heads=2, **WORDS)


def delta():
    linear = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8}
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    more = {"num_key_value_heads": 2, "head_dim": 8, "linear_value_head_dim": 8, "shared_expert_intermediate_size": 16}
    return language("Qwen3Next", **TINY, **WORDS, **linear, **experts, **more)


def swin():
    return pictures("Swin", image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4)


def resnet():
    return pictures("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")


def convnext():
    return pictures("ConvNext", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)


def clip():
    config = transformers.CLIPConfig(
        text_config={**TINY, **WORDS}, vision_config={**TINY, "image_size": 16, "patch_size": 8}, projection_dim=16
    )
    inputs = {"input_ids": ids(4, 8), "pixel_values": torch.randn(4, 3, 16, 16), "return_loss": True}
    return transformers.CLIPModel(config), inputs


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.cells = cell(32, 64, 2, dropout=0.1)
        self.head = nn.Linear(64, 100)

    def forward(self, ids):
        return functional.cross_entropy(self.head(self.cells(self.embed(ids))[0]).flatten(0, 1), ids.flatten())


class Stepwise(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(8, 16)

    def forward(self, x):
        state = None
        for step in x:
            state = self.cell(step, state)
        return state


class Sentences(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(8, 16, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        rnn = nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return rnn.pad_packed_sequence(self.cells(packed)[0], batch_first=True)[0]


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(1000, 16, mode=mode) for mode in ("sum", "mean", "max"))
        self.bottom = nn.Linear(13, 16)
        self.top = nn.Linear(16 + 6, 1)

    def forward(self, dense, sparse, clicked):
        first = self.bottom(dense).relu()
        rows = torch.stack([first, *(bag(sparse[:, i]) for i, bag in enumerate(self.bags))], 1)
        left, right = torch.tril_indices(4, 4, -1)
        pairs = torch.bmm(rows, rows.transpose(1, 2))[:, left, right]
        out = self.top(torch.cat([first, pairs], 1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(out, clicked)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 32, 3, 2, 1)
        self.norm = nn.GroupNorm(4, 16)
        self.attend = nn.MultiheadAttention(32, 4, batch_first=True)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.last = nn.Conv2d(32, 3, 1)
        self.inner = nn.InstanceNorm2d(32)

    def forward(self, x):
        high = functional.silu(self.norm(self.first(x)))
        low = self.inner(self.down(high))
        rows = low.flatten(2).transpose(1, 2)
        low = (rows + self.attend(rows, rows, rows)[0]).transpose(1, 2).reshape(low.shape)
        up = functional.interpolate(self.up(low), size=high.shape[-2:], mode="bilinear")
        return functional.mse_loss(self.last(torch.cat([high, up], 1)), x)


class FourierOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(1, 8)
        self.project = nn.Linear(8, 1)
        self.weight = nn.Parameter(torch.randn(8, 8, 5, 5, dtype=torch.complex64))

    def forward(self, x):
        y = self.lift(x).permute(0, 3, 1, 2)
        spectrum = torch.fft.rfft2(y)
        low = torch.zeros_like(spectrum)
        low[..., :5, :5] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :5, :5], self.weight)
        return self.project(torch.fft.irfft2(low, s=y.shape[-2:]).permute(0, 2, 3, 1))


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(32, 32)

    def forward(self, x):
        batch, length, _ = x.shape
        pairs = torch.view_as_complex(self.query(x).reshape(batch, length, 4, 4, 2))
        turns = torch.polar(torch.ones(length, 4), torch.outer(torch.arange(length).float(), torch.ones(4)))
        heads = torch.view_as_real(pairs * turns[None, :, None]).flatten(3).transpose(1, 2)
        return functional.scaled_dot_product_attention(heads, heads, heads)


class Strided(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        y = self.inner(x)
        parts = torch.unsafe_split(y, 4, 1)
        windows = y.unfold(1, 4, 2)
        return torch.as_strided(y, (4, 2, 4), (8, 4, 1)).sum() + windows.pow(2).sum() + (parts[0] * parts[1]).sum()


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.weight = nn.Bilinear(4, 4, 4)

    def forward(self, x):
        y = functional.pixel_unshuffle(functional.pixel_shuffle(self.first(x), 2), 2)
        grid = functional.affine_grid(torch.eye(2, 3).expand(4, 2, 3), y.shape, align_corners=False)
        y = functional.grid_sample(y, grid, align_corners=False)
        y = functional.fold(functional.unfold(y, 2, stride=2), y.shape[-2:], 2, stride=2)
        y = functional.glu(functional.pad(y, (1, 1, 1, 1), mode="replicate"), 1)
        rows = functional.adaptive_avg_pool1d(y.flatten(2), 4)
        return torch.cdist(rows, rows[:, :4]).sum() + self.weight(rows[:, 0], rows[:, 1]).sum()


def attention_over_edges():
    geometric = pytest.importorskip("torch_geometric.nn")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = geometric.GATConv(8, 8, heads=4)
            self.second = geometric.GATv2Conv(32, 4)

        def forward(self, x, edges):
            return self.second(self.first(x, edges).relu(), edges)

    return Net(), (torch.randn(10, 8), torch.randint(0, 10, (2, 30)))


OWN = {
    "lstm": lambda: (Recurrent(nn.LSTM), ids()),
    "gru": lambda: (Recurrent(nn.GRU), ids()),
    "rnn": lambda: (Recurrent(nn.RNN), ids()),
    "lstm cell": lambda: (Stepwise(nn.LSTMCell), torch.randn(3, 4, 8)),
    "gru cell": lambda: (Stepwise(nn.GRUCell), torch.randn(3, 4, 8)),
    "packed": lambda: (Sentences(), (torch.randn(4, 6, 8), torch.tensor([6, 2, 5, 3]))),
    "dlrm": lambda: (Recommender(), (torch.randn(8, 13), torch.randint(0, 1000, (8, 3, 5)), torch.rand(8))),
    "unet": lambda: (UNet(), torch.randn(4, 3, 16, 16)),
    "fourier operator": lambda: (FourierOperator(), torch.randn(4, 16, 16, 1)),
    "rotary": lambda: (Rotary(), torch.randn(4, 16, 32)),
    "strided": lambda: (Strided(), torch.randn(4, 8)),
    "picture": lambda: (Picture(), torch.randn(4, 3, 8, 8)),
    "transformer": lambda: (
        nn.Transformer(32, 4, 1, 1, 64, batch_first=True),
        (torch.randn(4, 16, 32), torch.randn(4, 8, 32)),
    ),
    "gat": attention_over_edges,
}
PUBLIC = (whisper, wav2vec2, forecast, mamba, fnet, deberta, llama4, xlstm, delta, swin, resnet, convnext, clip)
ZOO = {**{made.__name__: made for made in PUBLIC}, **OWN}


@functools.cache
def graph_of(name):
    torch.set_num_threads(1)
    return trace(*ZOO[name]())


@pytest.mark.parametrize("name", ZOO)
def test_every_op_of_a_model_has_a_rule_and_work_or_moves_nothing(name):
    graph = graph_of(name)
    assert graph.unknown == ()
    idle = {op.kind for op in graph.ops if op.flops_forward == op.bytes_forward == 0 and op.outputs}
    assert idle <= MOVES_NOTHING
    free = {op.kind for op in graph.ops if op.family in PRODUCTS and op.flops_forward == 0}
    assert free == set()


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn", "dlrm", "fourier operator", "fnet"])
def test_layers_that_once_counted_nothing_split_with_the_batch(name):
    graph = graph_of(name)
    batch = 8 if name == "dlrm" else 4
    families = (Family.RECURRENT, Family.FOURIER, Family.EMBEDDING)
    found = [op for op in graph.ops if op.family in families]
    assert found
    for op in found:
        sizes = {loop.size for loop in op.loops if loop.shardable}
        assert op.kind == "embedding" or sizes & {batch, 16}
