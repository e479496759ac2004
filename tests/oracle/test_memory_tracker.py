"""Predicted memory of small models against torch's own MemTracker, on steps that are really taken."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from jupyter_autotrain.parallel.search import Mode, SearchRequest, solve
from jupyter_autotrain.parallel.trace import trace

transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")
BATCH = 8
LENGTH = 128
WORDS = 1000
SIZES = {"vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}


def mlp():
    layers = nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256)
    return nn.Sequential(*layers), {"input": torch.randn(512, 256)}


def language_model(config, kind):
    tokens = torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) % WORDS
    return kind(config), {"input_ids": tokens, "labels": tokens}


def gpt2(**dropout):
    sizes = {"n_embd": 128, "n_layer": 3, "n_head": 4, "n_positions": LENGTH}
    return language_model(transformers.GPT2Config(**SIZES, **sizes, **dropout), transformers.GPT2LMHeadModel)


def gpt2_without_dropout():
    return gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def llama():
    sizes = {"hidden_size": 128, "num_hidden_layers": 3, "intermediate_size": 352}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": LENGTH}
    return language_model(transformers.LlamaConfig(**SIZES, **sizes, **heads), transformers.LlamaForCausalLM)


@dataclass
class Held:
    """Bytes of one step after the first, when the optimizer has its states."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    peak: int


def now(tracker, kind="current"):
    return {str(name).rsplit(".", 1)[-1]: size for name, size in tracker.get_tracker_snapshot(kind)[CPU].items()}


def loss_of(model, inputs):
    out = model(**inputs)
    return out.loss if hasattr(out, "loss") else out.pow(2).mean()


def measured(model, inputs):
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    from torch.distributed._tools.mem_tracker import MemTracker  # takes seconds: not where this file is only collected

    tracker = MemTracker()
    tracker.track_external(model, optimizer, *inputs.values())
    with tracker:
        for _ in range(2):
            tracker.reset_mod_stats()
            loss = loss_of(model, inputs)
            forward = now(tracker)
            loss.backward()
            backward = now(tracker)
            optimizer.step()
            optimizer.zero_grad()
            del loss
    # What enters the model is kept as well; the tracker counts it apart.
    activations = forward["ACT"] + forward["OTH"]
    return Held(forward["PARAM"], backward["GRAD"], now(tracker)["OPT"], activations, now(tracker, "peak")["Total"])


@pytest.fixture(scope="module", params=[mlp, gpt2, gpt2_without_dropout, llama], ids=lambda make: make.__name__)
def both(request):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    model, inputs = request.param()
    graph = trace(model, inputs, loss_fn=None if "labels" in inputs else lambda out: out.pow(2).mean())
    solution = solve(graph, "1xCPU", SearchRequest(mode=Mode.STAND_ALONE))
    yield solution.cost.ranks[0], measured(model.train(), inputs)
    torch.set_num_threads(before)


def test_a_device_with_fused_kernels_keeps_a_byte_per_dropped_element_and_no_scores():
    model, inputs = gpt2()
    graph = trace(model, inputs)
    on_cpu, on_gpu = (
        solve(graph, f"1x{device}", SearchRequest(mode=Mode.STAND_ALONE)).cost.ranks[0].activation_bytes
        for device in ("CPU", "A100")
    )
    scores = BATCH * 4 * LENGTH * LENGTH
    width = BATCH * LENGTH * 128
    assert on_cpu - on_gpu == 3 * (3 * scores * 4) + 7 * width * 3


@pytest.mark.parametrize("kind", ["parameter", "gradient", "optimizer", "activation"])
def test_each_kind_of_memory_is_what_the_tracker_sees(both, kind):
    predicted, real = both
    seen = getattr(real, "optimizer" if kind == "optimizer" else f"{kind}s")
    assert getattr(predicted, f"{kind}_bytes") == pytest.approx(seen, rel=0.02)


def test_the_peak_of_a_step_is_within_a_tenth(both):
    predicted, real = both
    assert predicted.peak_bytes == pytest.approx(real.peak, rel=0.1)
