"""Further loops that ranks run, one for each thing that `apply` says it does."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import signal
import warnings

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, IterableDataset

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply import interpreter
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan import Plan
from tests.parallel import training


def prepared(loader, ranks=2, microbatches=1, zero=ZeroLevel.NONE, **words):
    net = training.Mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    recipe = Recipe(ranks, zero=zero, microbatches=microbatches)
    return interpreter.apply(recipe, net, optimizer, loader, **words)


def samples_of(kind, samples, microbatches):
    """Return what a rank is given of numbers, and what it is told."""
    numbers = torch.arange(samples)
    loaders = {
        "loader": lambda: DataLoader(numbers, batch_size=8),
        "shuffled": lambda: DataLoader(numbers, batch_size=8, shuffle=True),
        "workers": lambda: DataLoader(numbers, batch_size=8, num_workers=1),
        "list": lambda: list(numbers.split(8)),
        "stream": lambda: DataLoader(Stream(samples), batch_size=8),
    }
    torch.manual_seed(distributed.get_rank() + 5)  # ranks need not have seeded themselves alike
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        _, _, loader = prepared(loaders[kind](), microbatches=microbatches)
    given = [list(map(torch.Tensor.tolist, loader)) for _ in range(2)]
    return given, [str(warning.message) for warning in told], len(loader) if kind != "stream" else None


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def dropped_out():
    """Return the units that a rank drops in its first batch."""
    torch.manual_seed(0)
    prepared([])
    return (nn.functional.dropout(torch.ones(64)) == 0).tolist()


def master_weights(zero, ranks, folder=None):
    """Return a weight after five steps too small for bfloat16, in the optimizer; its format, and that of what is made.

    With a folder of a checkpoint it is loaded first, else one is written there.
    """
    net = nn.Sequential(nn.Linear(4, 4, bias=False)).to(torch.bfloat16)
    nn.init.ones_(net[0].weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    recipe = Recipe(ranks, zero=zero, compute="bfloat16")
    net, optimizer, loader = interpreter.apply(recipe, net, optimizer, [torch.ones(2, 4)] * 5)
    went_on = folder is not None and interpreter.load((net, optimizer, loader), (), folder)
    for x in loader:
        optimizer.zero_grad()
        made = net(x.to(torch.bfloat16))
        made.sum(1).mean().backward()
        optimizer.step()
    if folder is not None and not went_on:
        interpreter.save((net, optimizer, loader), (), folder, 5)
    (held,) = optimizer.param_groups[0]["params"]
    return training.whole(held).flatten()[0].item(), held.dtype, made.dtype


def moved_states(zero):
    """Train, apply a plan, train on: the moments that the optimizer had go on."""
    torch.manual_seed(0)
    net = training.Mlp()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    batches = list(DataLoader(training.Samples("mlp"), batch_size=training.BATCH))
    step(net, optimizer, batches[0])
    alone = copy.deepcopy(net)
    optimizer_alone = torch.optim.AdamW(alone.parameters(), lr=1e-2)
    optimizer_alone.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    net, optimizer, loader = interpreter.apply(Recipe(2, zero=zero), net, optimizer, batches[1:3])
    for whole, own in zip(batches[1:3], loader, strict=True):
        step(alone, optimizer_alone, whole)
        step(net, optimizer, own)
    trained = {name: training.whole(weight) for name, weight in net.named_parameters()}
    return max(float((trained[name] - weight).abs().max()) for name, weight in alone.named_parameters())


def step(net, optimizer, batch):
    optimizer.zero_grad()
    net(**batch).backward()
    optimizer.step()


def until_saved(model, plan, folder, replicas=1):
    """Train for three steps, save, and train on: the losses, and the weights as saved."""
    loop = training.Loop(model, plan, replicas=replicas)
    losses = loop.steps(3)
    loop.save(folder, 3)
    weights = loop.weights()
    return losses + loop.steps(2), weights


def since_saved(model, plan, folder, replicas=1):
    """Load in a process that has trained otherwise, and train on: the losses, the weights as loaded, the step."""
    loop = training.Loop(model, plan, seed=1, replicas=replicas)
    step = loop.load(folder)
    weights = loop.weights()
    return loop.steps(2), weights, step


class Skipping(training.Mlp):
    """A model with a layer that is in no loss."""

    def __init__(self):
        super().__init__()
        self.skipped = nn.Linear(4, 4)


def skipped(plan):
    """Three steps of a model with weights that get no gradient; how often these changed."""
    net = Skipping()
    before = net.skipped.weight.detach().clone()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    net, optimizer, loader = Plan.from_json(plan).apply(net, optimizer, [training.example("mlp")] * 3)
    for batch in loader:
        step(net, optimizer, batch)
    return torch.equal(training.whole(net.skipped.weight), before)


def forgetful(plan):
    """Gradients of a step in which the model, not the optimizer, is told to forget before each microbatch."""
    loop = training.Loop("mlp", plan)
    loop.optimizer.zero_grad = loop.net.zero_grad
    loop.steps(1)
    return {name: training.whole(p.grad) for name, p in loop.net.named_parameters()}


def forward_passes(plan):
    """Return how often the two layers of a GPT-2 attend in a step."""
    loop = training.Loop("gpt2", plan)
    calls = []
    for layer in loop.net.transformer.h:
        layer.attn.register_forward_hook(lambda *_: calls.append(1))
    loop.steps(1)
    return len(calls)


def printed(plan):
    """Return what a rank prints in 25 steps."""
    net = training.Mlp()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        net, optimizer, loader = Plan.from_json(plan).apply(net, optimizer, [training.example("mlp")] * 25)
        for batch in loader:
            step(net, optimizer, batch)
    return out.getvalue()


def refused(what):
    """Return what is said of arguments that do not fit."""
    net = training.Mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    recipe = Recipe(2, microbatches=2)
    loader = DataLoader(torch.arange(16), batch_size=6 if what == "batch" else 8)
    if what == "scheduler":
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
    if what == "optimizer":
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    if what == "processes":
        recipe = Recipe(3)
    try:
        interpreter.apply(recipe, net, optimizer, loader)
        if what == "late scheduler":
            torch.optim.lr_scheduler.StepLR(optimizer, 1)
            optimizer.step()
    except PlanError as refusal:
        return str(refusal)
    return ""


def failing(rank, how):
    """One rank fails while the other waits for its gradients."""
    net, optimizer, _ = prepared([], zero=ZeroLevel.PARAMETERS)
    if distributed.get_rank() == rank:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("bad batch")
    step(net, optimizer, {"x": torch.ones(8, 24), "y": torch.zeros(8, dtype=torch.long)})


def saved_for_transformers(model, plan, folder, replicas):
    """Train for two steps and save for transformers: the weights."""
    loop = training.Loop(model, plan, replicas=replicas)
    loop.steps(2)
    loop.plan.save_pretrained(folder, loop.net)
    return loop.weights()


def saved_in_16_bits(zero, folder):
    net = training.llama().to(torch.bfloat16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    recipe = Recipe(2, zero=zero, compute="bfloat16", weights=frozenset(name for name, _ in net.named_parameters()))
    net, _, _ = interpreter.apply(recipe, net, optimizer, [])
    interpreter.save_pretrained(recipe, net, folder)


def saved_without_transformers(recipe, folder):
    try:
        interpreter.save_pretrained(recipe, training.Mlp(), folder)
    except PlanError as refusal:
        return str(refusal)
    return ""
