"""Models on the meta device that ranks start with: what they begin with, read and hold."""

from __future__ import annotations

import warnings
import weakref
from functools import partial
from pathlib import Path

import safetensors
import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_iter

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply import interpreter
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan import Plan
from tests.parallel import training


def save(model, folder, **words):
    """Save the model that one process trains."""
    torch.manual_seed(0)
    training.network(model).save_pretrained(folder, **words)


class Read:
    """Entries of a file of which the bytes that are read are counted."""

    count = 0

    def __init__(self, entry):
        self.entry = entry

    def get_shape(self):
        return self.entry.get_shape()

    def __getitem__(self, where):
        with _disable_current_modes():
            part = self.entry[where]  # of a file that is mapped: no memory of the process until it is read
        Read.count += part.nbytes
        return part.clone()


class File:
    """A file of safetensors that is read by slices alone."""

    opened = safetensors.safe_open

    def __init__(self, *args, **words):
        self.file = File.opened(*args, **words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def keys(self):
        return self.file.keys()

    def get_slice(self, key):
        return Read(self.file.get_slice(key))


class Held(TorchDispatchMode):
    """The most bytes of tensors that live at once."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.known = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in tree_iter(made):
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta and not isinstance(tensor, DTensor):
                self.count(tensor.untyped_storage())
        return made

    def count(self, storage):
        key = storage._cdata
        if key not in self.known:
            size = storage.nbytes()
            self.known.add(key)
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.forget, key, size)

    def forget(self, key, size):
        self.known.discard(key)
        self.now -= size


def read_and_held(model, plan, folder, replicas=1):
    """Return the bytes that a rank reads, the most that it holds while it does, and those of all weights."""
    with torch.device("meta"):
        net = training.network(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = sum(weight.nbytes for weight in net.parameters())
    Read.count = 0
    safetensors.safe_open = File
    try:
        with Held() as held:
            Plan.from_json(plan).apply(net, optimizer, [], weights=folder, replicas=replicas)
    finally:
        safetensors.safe_open = File.opened
    return Read.count, held.most, total


def begun(model, plan, weights=None, seed=0):
    """Return the weights and buffers that a model on the meta device begins with."""
    torch.manual_seed(seed)
    with torch.device("meta"):
        net = training.network(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    Plan.from_json(plan).apply(net, optimizer, [], weights=weights)
    held = dict([*net.named_parameters(), *net.named_buffers()])
    return {name: training.whole(value) for name, value in held.items()}


def save_body(folder):
    """Save a model without a head; return its weights."""
    import transformers

    made = transformers.BertModel(training.network("bert").config)
    made.save_pretrained(folder)
    return dict(made.named_parameters(prefix="bert"))


def begun_from_pretrained(folder):
    """Return what FSDP begins with of a model that transformers has left on the meta device, and what it says."""
    import transformers

    words = {"device_map": "meta", "dtype": torch.bfloat16}
    net = transformers.AutoModelForSequenceClassification.from_pretrained(folder, **words)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        interpreter.apply(Recipe(2, zero=ZeroLevel.PARAMETERS), net, optimizer, [], weights=folder)
    found = {name: training.whole(value) for name, value in net.named_parameters()}
    return found, [str(warning.message) for warning in told]


class Scaled(nn.Module):
    """A model with a weight that no code of its own draws."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.layers = nn.ModuleList([nn.Linear(4, 4)])


def refused(what, folder):
    """Return what is said of a start that cannot be."""
    made = {"drawn": Scaled, "layers": partial(training.llama, 3)}.get(what, training.llama)
    with torch.device("cpu" if what == "values" else "meta"):
        net = made()
    if what == "some":
        net.lm_head.to_empty(device="cpu")
    if what == "shape":
        net.lm_head.weight = nn.Parameter(torch.empty(95, 32, device="meta"))
    path = {"drawn": None, "folder": Path(folder) / "nowhere"}.get(what, folder)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    try:
        interpreter.apply(Recipe(2), net, optimizer, [], weights=path)
    except PlanError as refusal:
        return str(refusal)
    return ""
