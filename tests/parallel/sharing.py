"""Loops of ranks that share layers, one for each thing that `apply` says of them."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply import interpreter
from jupyter_autotrain.parallel.apply.clipping import local
from jupyter_autotrain.parallel.apply.recipe import Layout, ModuleRecipe, Recipe, TensorRecipe, WeightSplit
from jupyter_autotrain.parallel.plan import Plan
from tests.parallel import training


def held_elements(plan, model="gpt2"):
    """Weight → elements that this rank holds of it."""
    loop = training.Loop(model, plan)
    return {name: local(weight).numel() for name, weight in loop.net.named_parameters()}


def gradient_sums(plan):
    """How many sums over the ranks a backward pass takes."""
    net = applied(plan)
    loss = net(**training.example("llama")).loss
    with CommDebugMode() as counted:
        loss.backward()
    return counted.get_total_counts()


def applied(plan, model="llama"):
    torch.manual_seed(0)
    net = training.TENSOR_MODELS[model]()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    net, _, _ = Plan.from_json(plan).apply(net, optimizer, [])
    return net


def logits(plan):
    """Shapes of the logits of a rank in training and in evaluation, and how far they are from those of one process."""
    torch.manual_seed(0)
    alone = training.llama().eval()
    net = applied(plan)
    batch = {name: value[:2] for name, value in training.example("llama").items()}
    in_training = net.train()(**batch).logits
    assert isinstance(in_training, DTensor)
    with torch.no_grad():
        in_evaluation = net.eval()(**batch).logits
        difference = float((in_evaluation - alone(**batch).logits).abs().max())
    return tuple(in_training.to_local().shape), tuple(in_evaluation.shape), difference


def compiled(when, plan):
    """Return what is said of a model that is compiled before a plan is applied, or after."""
    net = training.llama()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    try:
        if when == "before":
            net.compile()
        net, _, _ = Plan.from_json(plan).apply(net, optimizer, [])
        net.compile()
    except PlanError as refusal:
        return str(refusal)
    return ""


def compiled_from_outside(plan):
    """First loss of a model that torch.compile wraps."""
    loop = training.Loop("llama", plan)
    loop.net = torch.compile(loop.net, backend="aot_eager")
    return loop.steps(1)[0]


def generated(plan):
    """Tokens that a model generates."""
    ids = training.example("llama")["input_ids"][:2]
    net = applied(plan).eval()
    return net.generate(ids, max_new_tokens=4, do_sample=False).tolist()


def stepped(plan, kernel):
    """Weights after a step of an optimizer with kernels over lists of weights, or without."""
    torch.manual_seed(0)
    net = training.gpt2()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, **{kernel: True} if kernel else {})
    net, optimizer, loader = Plan.from_json(plan).apply(net, optimizer, [training.example("gpt2")])
    for batch in loader:
        net(**batch).loss.backward()
        optimizer.step()
    return {name: training.whole(weight) for name, weight in net.named_parameters()}


def in_16_bits(plan):
    """Losses of a 16-bit model, and the formats of what the optimizer has and what the model multiplies with."""
    torch.manual_seed(0)
    net = training.llama().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    batches = [training.example("llama")] * 6
    net, optimizer, loader = Plan.from_json(plan).apply(net, optimizer, batches)
    losses = []
    for batch in loader:
        optimizer.zero_grad()
        loss = net(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses, {p.dtype for group in optimizer.param_groups for p in group["params"]}


def dropped_out():
    """Return the units that a rank drops; two ranks share layers, two such groups have samples of their own."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    modules = (ModuleRecipe("0", WeightSplit.COLUMNS),)
    recipe = Recipe(4, tensor=TensorRecipe(2, modules))
    interpreter.apply(recipe, net, torch.optim.SGD(net.parameters(), lr=0.1), [])
    return (nn.functional.dropout(torch.ones(64)) == 0).tolist()


def rows_after_rows():
    """Return how far output and gradients are from those of one process, where products leave features split."""
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)))
    alone = copy.deepcopy(net)
    split = Layout.FEATURES
    modules = (
        ModuleRecipe("0", WeightSplit.COLUMNS, leaves=split),
        ModuleRecipe("1", WeightSplit.ROWS, comes=split, reads=split, leaves=split),
        ModuleRecipe("2", WeightSplit.ROWS, comes=split, reads=split),
    )
    interpreter.apply(Recipe(2, tensor=TensorRecipe(2, modules)), net, torch.optim.SGD(net.parameters(), lr=0.1), [])
    x = torch.ones(4, 8)
    off = [net(x) - alone(x)]
    net(x).square().sum().backward()
    alone(x).square().sum().backward()
    for name, weight in alone.named_parameters():
        off.append(training.whole(net.get_parameter(name).grad) - weight.grad)
    return float(max(each.abs().max() for each in off))


class Doubling(nn.Module):
    """A product of a kind of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return x @ self.weight * 2


def refused(what, plan):
    """Return what is said of a module, or of a batch, that does not fit."""
    try:
        if what == "module":
            net = nn.Sequential(Doubling())
            recipe = Recipe(2, tensor=TensorRecipe(2, (ModuleRecipe("0", WeightSplit.COLUMNS),)))
            interpreter.apply(recipe, net, torch.optim.SGD(net.parameters(), lr=0.1), [])
        else:
            applied(plan)(input_ids=torch.ones(2, 7, dtype=torch.long))
    except PlanError as refusal:
        return str(refusal)
    return ""
