"""Models and the loop that ranks run: as a user writes it, with `plan.apply` or without."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.utils.data import DataLoader, Dataset

from jupyter_autotrain.parallel.plan import Plan

BATCH = 16
LENGTH = 8
STEPS = 3  # the third begins with what the optimizer has kept of two
BATCHES = 5
CLASSES = 10
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WORDS = {"vocab_size": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Mlp(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x, y):
        for layer in self.layers:
            x = self.dropout(torch.relu(layer(x)))
        return nn.functional.cross_entropy(self.head(x), y)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        )
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.head(self.body(x).mean((2, 3))), y)


class Block(nn.Module):
    """A layer as people write it, which shapes the heads itself."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.width_of_head = width // heads
        self.before_attention = nn.LayerNorm(width)
        self.before_mlp = nn.LayerNorm(width)
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.before_attention(x)
        shape = (*x.shape[:2], -1, self.width_of_head)
        q, k, v = (made(y).view(shape).transpose(1, 2) for made in (self.q, self.k, self.v))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.before_mlp(x))))


class Blocks(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(96, 32)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(32, 96)

    def forward(self, input_ids, labels):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def gpt2(layers=2):
    import transformers

    quiet = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    sizes = {"n_layer": layers, "n_embd": 32, "n_head": 4, "n_positions": LENGTH}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **WORDS, **quiet))


def llama(layers=2):
    import transformers

    sizes = {**SIZES, **WORDS, "num_key_value_heads": 2, "num_hidden_layers": layers}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))


def bloom(layers=2):
    """Return a model whose layers return tuples."""
    import transformers

    sizes = {"hidden_size": 32, "n_layer": layers, "n_head": 4}
    return transformers.BloomForCausalLM(transformers.BloomConfig(**sizes, **WORDS))


def bert(layers=2):
    import transformers

    sizes = {**SIZES, "num_hidden_layers": layers}
    config = transformers.BertConfig(**sizes, **NO_DROPOUT, vocab_size=96, max_position_embeddings=LENGTH)
    return transformers.BertForMaskedLM(config)


def vit(layers=2):
    import transformers

    sizes = {**SIZES, "num_hidden_layers": layers}
    config = transformers.ViTConfig(**sizes, **NO_DROPOUT, image_size=16, patch_size=8, num_labels=CLASSES)
    return transformers.ViTForImageClassification(config)


def t5(layers=2):
    import transformers

    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": layers, "num_heads": 4, "dropout_rate": 0.0}
    config = transformers.T5Config(**sizes, vocab_size=96, decoder_start_token_id=0, relative_attention_num_buckets=8)
    return transformers.T5ForConditionalGeneration(config)


def phi3(layers=2, groups=2):
    """Return a model with queries, keys and values in one weight, as gate and up; `groups` of heads share keys."""
    import transformers

    sizes = {**SIZES, **WORDS, "num_key_value_heads": groups, "num_hidden_layers": layers}
    lengths = {"max_position_embeddings": 64, "original_max_position_embeddings": 64}
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(**sizes, **lengths))


class Grouped(nn.Module):
    """A layer with one product for all heads, split by sizes, and with biases."""

    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        own = width // heads
        self.parts = [width, groups * own, groups * own]
        self.width_of_head = own
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, sum(self.parts))
        self.o = nn.Linear(width, width)

    def forward(self, x):
        shape = (*x.shape[:2], -1, self.width_of_head)
        made = self.qkv(self.norm(x)).split(self.parts, dim=-1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in made)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return x + self.o(attended.transpose(1, 2).flatten(2))


def grouped(layers=2):
    """Return a model of such layers."""
    net = Blocks(layers)
    net.layers = nn.ModuleList(Grouped() for _ in range(layers))
    return net


def mixtral(chosen=2):
    import transformers

    experts = {"num_local_experts": 4, "num_experts_per_tok": chosen}
    return transformers.MixtralForCausalLM(
        transformers.MixtralConfig(**SIZES, **WORDS, **experts, num_key_value_heads=2)
    )


def one_sided():
    """Return a mixture whose tokens choose among the first two of four experts, so that a rank may get none."""
    net = mixtral(chosen=1)
    for layer in net.model.layers:
        gate = layer.mlp.gate.weight
        with torch.no_grad():
            gate[1] = -gate[0]
            gate[2:] = 0
    return net


def balanced():
    net = mixtral()
    net.config.output_router_logits = True
    return net


def qwen_moe():
    """Return a mixture that not all tokens weigh to one, beside an expert that all of them see."""
    import transformers

    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    more = {"num_key_value_heads": 2, "shared_expert_intermediate_size": 16}
    return transformers.Qwen2MoeForCausalLM(transformers.Qwen2MoeConfig(**SIZES, **WORDS, **experts, **more))


def gpt_oss():
    """Return a mixture with biases, and gates of its own."""
    import transformers

    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 2, "head_dim": 8}
    return transformers.GptOssForCausalLM(transformers.GptOssConfig(**SIZES, **WORDS, **experts))


MODELS = {"mlp": Mlp, "cnn": Cnn, "gpt2": gpt2, "llama": llama, "bert": bert, "vit": vit}
TENSOR_MODELS = {**MODELS, "blocks": Blocks, "t5": t5, "mixtral": mixtral}
MIXTURES = {"mixtral": mixtral, "one-sided mixtral": one_sided, "qwen moe": qwen_moe, "gpt oss": gpt_oss}
FUSED_MODELS = {"phi3": phi3, "phi3 without groups": partial(phi3, groups=4), "grouped": grouped, "gpt2": gpt2}
FUSED_MODELS["phi3 of 4 layers"] = partial(phi3, 4)
DEEP_MODELS = {f"{made.__name__} of 4 layers": partial(made, 4) for made in (gpt2, llama, bloom, bert, vit, Blocks)}
DEEP_MODELS["llama of 5 layers"] = partial(llama, 5)


def network(model):
    """Return a model by its name; "random 7" is drawn by that number."""
    if model.startswith("random "):
        return drawn(int(model.removeprefix("random ")))
    return {**TENSOR_MODELS, **FUSED_MODELS, **MIXTURES, **DEEP_MODELS, "balanced mixtral": balanced}[model]()


def drawn(number):
    """Return a small causal model of drawn kind and sizes."""
    import transformers

    draw = Random(number)
    heads = draw.choice([1, 2, 4])
    width = heads * draw.choice([8, 16])
    layers = draw.choice([4, 8])
    tied = draw.random() < 0.5
    if draw.random() < 0.4:
        sizes = {"n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": draw.choice([LENGTH, 32])}
        quiet = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "tie_word_embeddings": tied}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **WORDS, **quiet))
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, **WORDS}
    sizes |= {"intermediate_size": draw.choice([24, 64]), "num_key_value_heads": draw.choice([1, heads])}
    kinds = ((transformers.LlamaConfig, transformers.LlamaForCausalLM),)
    kinds += ((transformers.Qwen2Config, transformers.Qwen2ForCausalLM),)
    config, kind = draw.choice(kinds)
    return kind(config(**sizes, tie_word_embeddings=tied))


class Samples(Dataset):
    def __init__(self, model, count=BATCH * BATCHES):
        self.model = model
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        made = torch.Generator().manual_seed(index)
        label = int(torch.randint(CLASSES, (), generator=made))
        if self.model == "mlp":
            return {"x": torch.randn(24, generator=made), "y": label}
        if self.model == "cnn":
            return {"x": torch.randn(3, 8, 8, generator=made), "y": label}
        if self.model.startswith("vit"):
            return {"pixel_values": torch.randn(3, 16, 16, generator=made), "labels": label}
        ids = torch.randint(3, 96, (LENGTH,), generator=made)
        return {"input_ids": ids, "labels": ids}


def example(model):
    """One batch."""
    return next(iter(DataLoader(Samples(model), batch_size=BATCH)))


def whole(tensor):
    """Return a tensor that all ranks have, of one that may be sharded."""
    value = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return value.detach().clone()


def mean_over_ranks(loss):
    value = loss.detach().clone()
    if torch.distributed.is_initialized():
        torch.distributed.all_reduce(value)
        value /= torch.distributed.get_world_size()
    return float(value)


@dataclass
class Trained:
    """Results of some steps, the same on all ranks."""

    losses: list
    gradients: list
    rate: float


class Loop:
    """A training loop as a user writes it; `plan` as JSON, None: without one.

    Without a plan, batch statistics may be over each of several parts of a batch, as ranks have them. With `weights`
    the model begins on the meta device: a folder, or "" for a random start.
    """

    def __init__(
        self, model, plan=None, *, max_norm=None, replicas=1, statistics_over=1, seed=0, compiled=False, weights=None
    ):
        torch.manual_seed(seed)
        with torch.device("cpu" if weights is None else "meta"):
            self.net = network(model).train()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))
        shuffled = torch.Generator().manual_seed(seed + 1)
        self.loader = DataLoader(Samples(model), batch_size=BATCH, shuffle=True, generator=shuffled)
        self.plan = None if plan is None else Plan.from_json(plan)
        self.max_norm = max_norm
        self.statistics_over = statistics_over
        self.parts = 1
        if self.plan:
            self.parts = self.plan.microbatches
            words = {"schedulers": [self.scheduler], "max_norm": max_norm, "replicas": replicas}
            words |= {"weights": weights or None}
            self.net, self.optimizer, self.loader = self.plan.apply(self.net, self.optimizer, self.loader, **words)
        if compiled:
            self.net.compile(backend="aot_eager")
        self.batches = iter(self.loader)

    def steps(self, count):
        """Losses of some steps, of all ranks and microbatches."""
        losses = [self.microbatch() for _ in range(count * self.parts)]
        return [sum(losses[at : at + self.parts]) / self.parts for at in range(0, len(losses), self.parts)]

    def microbatch(self):
        batch = next(self.batches)
        self.optimizer.zero_grad()
        loss = sum(loss_of(self.net, part) for part in chunks(batch, self.statistics_over)) / self.statistics_over
        loss.backward()
        if self.plan is None and self.max_norm is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.max_norm)
        self.optimizer.step()
        self.scheduler.step()
        return mean_over_ranks(loss)

    def save(self, folder, step):
        parts = (self.net, self.optimizer, self.loader)
        self.plan.save_checkpoint(folder, *parts, step=step, schedulers=[self.scheduler])

    def load(self, folder):
        parts = (self.net, self.optimizer, self.loader)
        step = self.plan.load_checkpoint(folder, *parts, schedulers=[self.scheduler])
        self.batches = iter(self.loader)
        return step

    def weights(self):
        return {name: whole(p) for name, p in self.net.named_parameters()}


def train(model, plan=None, **words):
    """Train for three steps: what all ranks see of it."""
    loop = Loop(model, plan, **words)
    losses = []
    gradients = []
    for _ in range(STEPS):
        losses += loop.steps(1)
        gradients.append({name: whole(p.grad) for name, p in loop.net.named_parameters() if p.grad is not None})
    return Trained(losses, gradients, loop.optimizer.param_groups[0]["lr"])


def loss_of(net, batch):
    found = net(**batch)
    return getattr(found, "loss", found)


def chunks(batch, count):
    if count == 1:
        return [batch]
    cut = {name: values.chunk(count) for name, values in batch.items()}
    return [dict(zip(cut, part, strict=True)) for part in zip(*cut.values(), strict=True)]
