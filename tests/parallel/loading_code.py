"""What ranks do with the code of a plan that reads weights: train a model that begins on the meta device."""

import importlib.util
import sys
from unittest import mock

import torch
import transformers

from tests.parallel import run_plan_code
from tests.parallel.run_plan_code import SIZES, STEPS, WORDS


def phi3():
    lengths = {"max_position_embeddings": 64, "original_max_position_embeddings": 64}
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(**SIZES, **WORDS, **lengths, num_key_value_heads=2))


MODELS = {**run_plan_code.MODELS, "phi3": phi3}


def made(model):
    net = MODELS[model]().double().train()
    if model == "mixtral":
        net.set_experts_implementation("eager")  # torch has no grouped products of 64 bits
    return net


def saved(model, folder):
    """Save a model, and return it."""
    torch.manual_seed(0)
    net = made(model)
    net.save_pretrained(folder)
    return net


def compare(model, folder):
    """Train by `plan_code.py` of a folder, which also has the weights, and alone: how far they end from one another."""
    torch.manual_seed(0)
    alone = made(model)
    expected = run_plan_code.train(alone, torch.optim.AdamW(alone.parameters(), lr=3e-4))
    batches = [run_plan_code.batch_of(step) for step in range(STEPS)]
    with torch.device("meta"):
        net = made(model)
    with mock.patch.dict(sys.modules, {"jupyter_autotrain": None}):
        code = loaded(folder / "plan_code.py")
        is_staged = hasattr(code, "spread_stages")
        losses = list(code.train(net, batches))
    return run_plan_code.apart(net, torch.stack(losses), alone, expected, own=is_staged)


def refused(model, folder):
    """Return what the code says to a model that has values."""
    with mock.patch.dict(sys.modules, {"jupyter_autotrain": None}):
        code = loaded(folder / "plan_code.py")
        try:
            code.spread(made(model))
        except code.PlanError as error:
            return str(error)
    return ""


def loaded(path):
    spec = importlib.util.spec_from_file_location("plan_code", path)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"plan_code": module}):  # dataclasses look their module up
        spec.loader.exec_module(module)
    return module
