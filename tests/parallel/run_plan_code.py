"""Run by torchrun: trains models with the code of their plans, and alone, and writes how far apart they end.

Usage: run_plan_code.py FOLDER. `cases.json` there lists cases, `MODEL: what`, each with its code in `plan_code_N.py`;
rank 0 writes `found.json`: case → {loss: largest difference, parameter: largest difference, error: text or ""}.
"""

import copy
import importlib
import json
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
import transformers
from torch import nn
from torch.distributed.tensor import DTensor

STEPS = 3
BATCH = 4
LENGTH = 16
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
WORDS = {"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
QUIET = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "loss_type": "ForCausalLM"}


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **WORDS, num_key_value_heads=2))


def gpt2(layers=3):
    sizes = {"n_layer": layers, "n_embd": 64, "n_head": 4, "n_positions": LENGTH}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **WORDS, **QUIET))


def mixtral():
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 2}
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**SIZES, **WORDS, **experts))


def t5():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 3, "num_heads": 4, "dropout_rate": 0.0}
    config = transformers.T5Config(**sizes, vocab_size=128, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


class Block(nn.Module):
    """A layer written by hand."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


class Stack(nn.Module):
    """A model written by hand, which returns its loss."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 32)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 128)

    def forward(self, input_ids, labels):
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), labels.flatten())


MODELS = {"llama": llama, "gpt2": gpt2, "t5": t5, "mixtral": mixtral, "stack": Stack, "gpt2 of 4": lambda: gpt2(4)}


def batch_of(step=0):
    ids = (torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) * 7 + step) % 127 + 1
    return {"input_ids": ids, "labels": ids}


def train(model, optimizer):
    losses = []
    for step in range(STEPS):
        found = model(**batch_of(step))
        loss = getattr(found, "loss", found)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def parameters_of(model):
    return {name: p.full_tensor() if isinstance(p, DTensor) else p for name, p in model.named_parameters()}


def compare(case, code):
    torch.manual_seed(0)
    model = MODELS[case.partition(":")[0]]().double().train()
    if case.startswith("mixtral"):
        model.set_experts_implementation("eager")  # torch has no grouped products of 64 bits
    alone = copy.deepcopy(model)
    expected = train(alone, torch.optim.AdamW(alone.parameters(), lr=3e-4))
    if hasattr(code, "spread_stages"):
        losses = torch.stack(list(code.train(model, [batch_of(step) for step in range(STEPS)])))
        return apart(model, losses, alone, expected, own=True)
    model = code.spread(model)
    optimizer = code.make_optimizer(model)
    losses = torch.stack([code.train_step(model, optimizer, batch_of(step)) for step in range(STEPS)])
    return apart(model, losses, alone, expected)


def apart(model, losses, alone, expected, *, own=False):
    """Of pipeline stages each has parameters of its own; a tied one is named as the stage that has it reads it."""
    trained = parameters_of(model)
    whole = dict(alone.named_parameters(remove_duplicate=False))
    wanted = parameters_of(alone) if not own else {name: whole[name] for name in trained}
    assert trained.keys() == wanted.keys()
    most = max(float((trained[name] - wanted[name]).abs().max()) for name in wanted)
    return {"loss": float((losses - expected).abs().max()), "parameter": most, "error": ""}


def compare_all(folder):
    """Return what `found.json` has, from one of the ranks of a process group; the package cannot be imported."""
    package = sys.modules.get("jupyter_autotrain")
    sys.modules["jupyter_autotrain"] = None
    sys.path.insert(0, str(folder))
    try:
        names = json.loads((folder / "cases.json").read_text())
        return {name: compared(name, number) for number, name in enumerate(names)}
    finally:
        sys.path.remove(str(folder))
        sys.modules["jupyter_autotrain"] = package


def compared(case, number):
    try:
        return compare(case, importlib.import_module(f"plan_code_{number}"))
    except Exception:  # noqa: BLE001 - the next case is run all the same; ranks fail alike
        return {"loss": 0.0, "parameter": 0.0, "error": traceback.format_exc(limit=-4)}


def main(folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = compare_all(folder)
    if dist.get_rank() == 0:
        (folder / "found.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
