"""Loops by whole batches, which run with pipeline stages and without: `plan.parallelize`."""

from __future__ import annotations

import os
import signal

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.clipping import local
from jupyter_autotrain.parallel.plan import Plan
from tests.parallel import training


class Loop:
    """A training loop as a user writes it; `plan` as JSON, `weights` as of `training.Loop`."""

    def __init__(self, model, plan, *, max_norm=None, seed=0, weights=None):
        torch.manual_seed(seed)
        with torch.device("cpu" if weights is None else "meta"):
            self.net = training.network(model).train()
        self.names = {name for name, _ in self.net.named_parameters()}
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))
        shuffled = torch.Generator().manual_seed(seed + 1)
        self.batches = iter(DataLoader(training.Samples(model), training.BATCH, shuffle=True, generator=shuffled))
        words = {"optimizer": self.optimizer, "schedulers": [self.scheduler], "max_norm": max_norm}
        words |= {"weights": weights or None}
        self.train = training.Plan.from_json(plan).parallelize(self.net, **words)

    def steps(self, count):
        return [self.step() for _ in range(count)]

    def step(self):
        loss = self.train.step(next(self.batches))
        self.scheduler.step()
        return float(loss)

    def of_all(self, values):
        """Return what all ranks have by the names of the whole model, each tensor whole; of a tied weight the first."""
        whole = {name: training.whole(value) for name, value in values if value is not None}
        held = {name: value for name, value in whole.items() if name in self.names}
        if not distributed.is_initialized():
            return held
        every = [None] * distributed.get_world_size()
        distributed.all_gather_object(every, held)
        return {name: value for one in reversed(every) for name, value in one.items()}

    def weights(self):
        return self.of_all(self.net.named_parameters())

    def gradients(self):
        return self.of_all((name, weight.grad) for name, weight in self.net.named_parameters())


def train(model, plan, **words):
    """Train for three steps: what all ranks see of it."""
    loop = Loop(model, plan, **words)
    losses = []
    gradients = []
    for _ in range(training.STEPS):
        losses.append(loop.step())
        gradients.append(loop.gradients())
    return training.Trained(losses, gradients, loop.optimizer.param_groups[0]["lr"])


def until_saved(model, plan, folder):
    """Train for three steps, save, and train on: the losses, and the weights as saved."""
    loop = Loop(model, plan)
    losses = loop.steps(3)
    loop.train.save_checkpoint(folder, step=3)
    weights = loop.weights()
    return losses + loop.steps(2), weights


def since_saved(model, plan, folder):
    """Load in a process that has trained otherwise, and train on: the losses, the weights as loaded, the step."""
    loop = Loop(model, plan, seed=1)
    loop.steps(1)
    step = loop.train.load_checkpoint(folder)
    weights = loop.weights()
    shuffled = torch.Generator().manual_seed(1)
    loop.batches = iter(DataLoader(training.Samples(model), training.BATCH, shuffle=True, generator=shuffled))
    for _ in range(step):
        next(loop.batches)
    return loop.steps(2), weights, step


def saved_for_transformers(model, plan, folder):
    """Train for two steps and save for transformers: the weights."""
    loop = Loop(model, plan)
    loop.steps(2)
    loop.train.save_pretrained(folder)
    return loop.weights()


def held_elements(model, plan):
    """Weight → elements that this rank holds of it."""
    return {name: local(weight).numel() for name, weight in Loop(model, plan).net.named_parameters()}


def lengths(model, plan):
    """Losses of batches of several lengths, without a step, each before one is made."""
    loop = Loop(model, plan)
    found = []
    for length in (8, 6, 6, 8):
        batch = {name: value[:, :length] for name, value in training.example(model).items()}
        found.append(float(loop.train.evaluate(batch)))
        assert loop.net.training
        loop.train.step(batch)
    return found


def tied(plan):
    """Return a tied weight after three steps, as this rank has it."""
    loop = Loop("gpt2 of 4 layers", plan)
    loop.steps(3)
    held = dict(loop.net.named_parameters())
    return training.whole(held.get("transformer.wte.weight", held.get("lm_head.weight")))


class Plain(nn.Module):
    """A model that returns logits."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(24, 32)
        self.blocks = nn.Sequential(*(training.Block() for _ in range(4)))
        self.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, training.CLASSES))

    def forward(self, x):
        return self.head(self.blocks(self.embedding(x.unflatten(1, (1, 24)))).mean(1))


def with_loss_function(plan):
    """Losses of a model that returns logits, on pairs."""
    torch.manual_seed(0)
    net = Plain()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train = Plan.from_json(plan).parallelize(net, nn.CrossEntropyLoss(), optimizer=optimizer)
    samples = training.example("mlp")
    return [float(train.step((samples["x"], samples["y"]))) for _ in range(4)]


def of_64_bits(plan):
    """Return the losses of a model of 64 bits."""
    torch.manual_seed(0)
    net = Plain().double()
    train = Plan.from_json(plan).parallelize(net, nn.CrossEntropyLoss(), optimizer=torch.optim.SGD(net.parameters()))
    samples = training.example("mlp")
    return [train.step((samples["x"].double(), samples["y"])) for _ in range(2)]


def shuffled_alike(plan):
    """Return the order of samples that ranks draw after `parallelize`, and the units that each drops out."""
    torch.manual_seed(distributed.get_rank() + 5)
    loop = Loop("llama of 4 layers", plan)
    order = torch.randperm(16).tolist()
    with loop.train._drawing():
        dropped = (nn.functional.dropout(torch.ones(64)) == 0).tolist()
    return order, dropped


def failing(plan, how):
    """One rank fails in the middle of a step."""
    loop = Loop("llama of 4 layers", plan)
    loop.steps(1)
    layer = loop.net.model.layers[3]

    def fail(*_):
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("bad layer")

    if distributed.get_rank() == 1:
        layer.register_forward_hook(fail)
    loop.steps(1)


def refused(plan, what):
    """Return what is said of a use that does not fit."""
    try:
        if what == "loop":
            net = training.network("llama of 4 layers")
            Plan.from_json(plan).apply(net, torch.optim.SGD(net.parameters()), [])
        if what == "model":
            net = training.network("gpt2 of 4 layers")
            Plan.from_json(plan).parallelize(net, optimizer=torch.optim.SGD(net.parameters()))
        loop = Loop("llama of 4 layers", plan)
        batch = training.example("llama")
        if what == "batches" and distributed.get_rank() == 1:
            batch = {name: value.flip(0) for name, value in batch.items()}
        if what == "no loss":
            del batch["labels"]
        if what == "call":
            loop.net(**batch)
        loop.train.step(batch)
    except PlanError as refusal:
        return str(refusal)
    except RuntimeError as failure:
        return str(failure.__cause__)
    return ""
