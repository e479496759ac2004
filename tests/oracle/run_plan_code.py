"""Run by torchrun: trains models with the code of their plans, and alone, and writes how far apart they end.

Usage: run_plan_code.py FOLDER. `cases.json` there maps a case to {model, code, split: whether ranks have own samples};
rank 0 writes `found.json`: case → {loss: largest difference, parameter: largest difference, error: text or ""}.
"""

import copy
import json
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import transformers
from torch.distributed.tensor import DTensor

STEPS = 3
BATCH = 4
LENGTH = 16
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
WORDS = {"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
QUIET = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "loss_type": "ForCausalLM"}


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **WORDS, num_key_value_heads=2))


def gpt2():
    sizes = {"n_layer": 3, "n_embd": 64, "n_head": 4, "n_positions": LENGTH}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **WORDS, **QUIET))


MODELS = {"llama": llama, "gpt2": gpt2}


def batch_of(step=0):
    ids = (torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) * 7 + step) % 127 + 1
    return {"input_ids": ids, "labels": ids}


def train(model, optimizer, part=slice(None)):
    losses = []
    for step in range(STEPS):
        loss = model(**{key: value[part] for key, value in batch_of(step).items()}).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack([loss.full_tensor() if isinstance(loss, DTensor) else loss for loss in losses])


def parameters_of(model):
    found = {}
    for name, parameter in model.named_parameters():
        plain = name.removeprefix("module.").replace("_checkpoint_wrapped_module.", "")
        value = parameter.detach()
        found[plain] = value.full_tensor() if isinstance(value, DTensor) else value
    return found


def compare(case):
    torch.manual_seed(0)
    model = MODELS[case["model"]]().double().train()
    alone = copy.deepcopy(model)
    expected = train(alone, torch.optim.AdamW(alone.parameters(), lr=3e-4))
    names = {"model": model}
    code = case["code"]
    exec(compile(code if "def spread" in code else code.replace('"cuda"', '"cpu"'), "plan", "exec"), names)
    if "spread" in names:
        model = names["spread"](model)
        optimizer = names["make_optimizer"](model)
        losses = torch.stack([names["train_step"](model, optimizer, batch_of(step)) for step in range(STEPS)])
        return apart(model, losses, alone, expected)
    model = names["model"]
    size = BATCH // dist.get_world_size()
    part = slice(dist.get_rank() * size, (dist.get_rank() + 1) * size) if case["split"] else slice(None)
    optimizer = names.get("optimizer") or torch.optim.AdamW(model.parameters(), lr=3e-4)
    with names["step"]() if "step" in names else warnings.catch_warnings():
        losses = train(model, optimizer, part)
    dist.all_reduce(losses)
    return apart(model, losses / dist.get_world_size(), alone, expected)


def apart(model, losses, alone, expected):
    trained = parameters_of(model)
    wanted = parameters_of(alone)
    assert trained.keys() == wanted.keys()
    most = max(float((trained[name] - wanted[name]).abs().max()) for name in wanted)
    return {"loss": float((losses - expected).abs().max()), "parameter": most, "error": ""}


def main(folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = {}
    for name, case in json.loads((folder / "cases.json").read_text()).items():
        try:
            found[name] = compare(case)
        except Exception:  # noqa: BLE001 - the next case is run all the same; ranks fail alike
            found[name] = {"loss": 0.0, "parameter": 0.0, "error": traceback.format_exc(limit=-4)}
    if dist.get_rank() == 0:
        (folder / "found.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
