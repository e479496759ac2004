"""Tests that the graph tells what may be cut into microbatches, and that no cut changes the mathematics."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph.batch import batch_in
from jupyter_autotrain.parallel.graph.batch_dims import batch_dim_after_view
from jupyter_autotrain.parallel.graph.graph import LoopRole
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search.request.request import batch_size, microbatch_limit
from jupyter_autotrain.parallel.trace import trace
from tests.oracle.whole_space import plan

transformers = pytest.importorskip("transformers")


class Encoder(nn.Module):
    """Sequence first unless told otherwise, as `nn.TransformerEncoder` is."""

    def __init__(self, *, batch_first, layers=2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.encoder(x)).pow(2).mean()


class Pictures(nn.Module):
    def __init__(self, *, norm):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.norms = nn.ModuleList(norm(8) for _ in range(2))
        self.head = nn.Linear(8, 10)

    def forward(self, x, y):
        x = functional.relu(self.norms[0](self.first(x)))
        x = functional.relu(x + self.norms[1](self.second(x)))
        return functional.cross_entropy(self.head(x.mean((2, 3))), y)


class Graph(nn.Module):
    """A whole graph is one sample: its nodes speak to each other."""

    def __init__(self):
        super().__init__()
        geometric = pytest.importorskip("torch_geometric.nn")
        self.first = geometric.GCNConv(16, 32)
        self.second = geometric.GCNConv(32, 4)

    def forward(self, x, edges, y):
        return functional.cross_entropy(self.second(functional.relu(self.first(x, edges)), edges), y)


class Loss(nn.Module):
    """A product and a loss of it."""

    def __init__(self, loss):
        super().__init__()
        self.product = nn.Linear(8, 16)
        self.loss = loss

    def forward(self, x):
        return self.loss(self.product(x))


def ids(batch=8, length=16):
    return torch.arange(batch * length).view(batch, length) % 100 + 1


def language(name, **more):
    sizes = {"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if name == "gpt2":
        made = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, **sizes))
    else:
        shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
        made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, num_key_value_heads=2, **sizes))
    return trace(made, {"input_ids": ids(), "labels": ids(), **more})


def contrastive():
    inner = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    words = {**inner, "vocab_size": 128, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1}
    config = transformers.CLIPConfig(
        text_config=words, vision_config={**inner, "image_size": 16, "patch_size": 8}, projection_dim=16
    )
    model = transformers.CLIPModel(config)
    return trace(model, {"input_ids": ids(), "pixel_values": torch.randn(8, 3, 16, 16), "return_loss": True})


@pytest.mark.parametrize(("batch_first", "shape"), [(False, (16, 8, 32)), (True, (8, 16, 32)), (False, (15, 6, 32))])
def test_a_transformer_is_cut_along_its_batch_wherever_that_is(batch_first, shape):
    graph = trace(Encoder(batch_first=batch_first), (torch.randn(shape),))
    dim = 0 if batch_first else 1
    batch, _ = batch_in(graph)
    (given,) = (t for t in graph.tensors if t.name.startswith("input"))
    assert batch.dims(given.id) == {dim}
    assert microbatch_limit(graph) == microbatch_limit(prepare(graph)) == shape[dim]


def test_a_sequence_first_transformer_of_eight_samples_never_has_sixteen_microbatches():
    model = Encoder(batch_first=False, layers=4)
    inputs = (torch.randn(16, 8, 32),)
    found = plan(model, inputs, "2xA100", pins={"stages": 2, "microbatches": 8})
    assert found.microbatches == 8
    assert any("cut along dim 1 of" in note for note in found.notes)
    with pytest.raises(PlanError, match="16 microbatches do not divide the batch of 8"):
        plan(model, inputs, "2xA100", pins={"microbatches": 16})


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_language_model_is_cut_along_its_batch_with_and_without_a_mask(name, masked):
    more = {"attention_mask": torch.ones(8, 16, dtype=torch.long)} if masked else {}
    assert microbatch_limit(prepare(language(name, **more))) == 8


def test_pictures_with_norms_of_each_sample_are_cut():
    graph = trace(Pictures(norm=lambda c: nn.GroupNorm(2, c)), (torch.randn(64, 3, 8, 8), torch.zeros(64).long()))
    assert microbatch_limit(graph) == 64


def no_cut_cases():
    pictures = torch.randn(64, 3, 8, 8), torch.zeros(64, dtype=torch.long)
    edges = torch.randint(0, 64, (2, 256))
    rows = (torch.randn(64, 8),)
    shuffled = torch.randperm(64)
    return {
        "batch norm": (lambda: trace(Pictures(norm=nn.BatchNorm2d), pictures), "norm"),
        "nodes of a graph": (lambda: trace(Graph(), (torch.randn(64, 16), edges, torch.zeros(64).long())), ""),
        "clip": (contrastive, ""),
        "in-batch negatives": (
            lambda: trace(Loss(lambda z: functional.cross_entropy(z @ z.t(), torch.arange(64))), rows),
            "compares samples",
        ),
        "centred": (lambda: trace(Loss(lambda z: (z - z.mean(0)).pow(2).mean()), rows), "summed"),
        "a root of a mean": (lambda: trace(Loss(lambda z: z.pow(2).mean().sqrt()), rows), "not linear"),
        "a ratio of sums": (lambda: trace(Loss(lambda z: z.sum() / z.abs().sum()), rows), "not linear"),
        "a mean and a sum": (lambda: trace(Loss(lambda z: z.pow(2).mean() + z.sum()), rows), "not linear"),
        "softmax over samples": (lambda: trace(Loss(lambda z: z.softmax(0).pow(2).mean()), rows), "softmax"),
        "mixed up": (lambda: trace(Loss(lambda z: (z + z[shuffled]).pow(2).mean()), rows), "index"),
        "sorted": (lambda: trace(Loss(lambda z: z.sort(0).values[0].mean()), rows), "sort"),
        "two views": (lambda: trace(Loss(lambda z: (z[:32] * z[32:]).mean()), rows), "slice"),
        "halves": (lambda: trace(Loss(lambda z: z.chunk(2)[0].mean()), rows), ""),
    }


@pytest.mark.parametrize("case", no_cut_cases())
def test_where_samples_meet_nothing_is_cut_and_the_reason_is_said(case):
    make, said = no_cut_cases()[case]
    graph = make()
    assert microbatch_limit(graph) == microbatch_limit(prepare(graph)) == 1
    assert said in graph.unsplittable_reason
    assert graph.unsplittable_reason


def test_the_plan_says_why_its_batch_is_not_cut_and_what_data_parallelism_then_needs():
    pictures = torch.randn(64, 3, 8, 8), torch.zeros(64, dtype=torch.long)
    found = plan(Pictures(norm=nn.BatchNorm2d), pictures, "4xA100", simplicity=0)
    assert found.microbatches == 1
    assert batch_size(found.graph) == 64
    assert "native_batch_norm" in found.notes[0]
    assert "DDP" in found.notes[1]
    texts = (" ".join(repr(found).split()), found.to_html().replace("&#x27;", "'"))
    assert all(note in text for note in found.notes for text in texts)
    assert found.view()["notes"] == list(found.notes)
    again = type(found).from_json(found.to_json())
    assert again.notes == found.notes
    with pytest.raises(PlanError, match=r"batch is not cut.*native_batch_norm"):
        plan(Pictures(norm=nn.BatchNorm2d), pictures, "4xA100", pins={"microbatches": 4})


@pytest.mark.parametrize("shape", [(16, 8, 32), (15, 6, 32)])
def test_a_cut_where_the_graph_says_so_leaves_loss_and_gradients_as_they_were(shape):
    torch.manual_seed(0)
    model = Encoder(batch_first=False).double()
    x = torch.randn(shape, dtype=torch.float64)
    graph = trace(Encoder(batch_first=False), (torch.randn(shape),))
    batch, _ = batch_in(graph)
    (dim,) = batch.dims(next(t.id for t in graph.tensors if t.name.startswith("input")))
    model(x).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for part in x.chunk(microbatch_limit(graph), dim):
        (model(part) / microbatch_limit(graph)).backward()
    assert all(torch.allclose(a, p.grad, atol=1e-9) for a, p in zip(whole, model.parameters(), strict=True))


def test_samples_are_followed_through_views_that_join_and_part_dims():
    assert batch_dim_after_view((16, 8, 4), (128, 4), (1, 1), 8) == (0, 16)
    assert batch_dim_after_view((128, 4), (16, 8, 4), (0, 16), 8) == (1, 1)
    assert batch_dim_after_view((8, 16, 4), (128, 4), (0, 1), 8) == (0, 1)
    assert batch_dim_after_view((16, 8, 32), (16, 32, 8), (1, 1), 8) == (1, 1)
    assert batch_dim_after_view((6, 5), (3, 10), (0, 1), 6) is None


def test_a_cut_divides_the_memory_of_a_sequence_first_model():
    model = Encoder(batch_first=False, layers=4)
    inputs = (torch.randn(64, 32, 32),)
    held = []
    for microbatches in (1, 4, 32):
        pins = {"stages": 2, "mesh": (1,), "microbatches": microbatches, "schedule": "1f1b", "recompute": "none"}
        cost = plan(model, inputs, "2xA100", pins=pins).cost
        held.append(max(rank.activation_bytes for rank in cost.ranks))
    assert held[1] < 0.7 * held[0]
    assert held[2] < 0.2 * held[1]


def test_the_batch_of_a_cut_graph_is_the_only_loop_called_batch():
    graph = trace(Encoder(batch_first=False), (torch.randn(16, 8, 32),))
    sizes = {loop.size for op in graph.ops for loop in op.loops if loop.role is LoopRole.BATCH}
    assert all(size % 8 == 0 for size in sizes)
    assert 16 not in sizes
