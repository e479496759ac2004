"""Measurements of what ranks exchange, behind those of `probe`; the entry point of the trial is `main`."""

from __future__ import annotations

import json
import math
import os
import warnings
from functools import partial
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed._composable.replicate import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate

from jupyter_autotrain.parallel.calibrate.probe import SAMPLES_FILE, Prober, Sample, device_facts

LINK_BYTES = (4e3, 256e3, 2e6, 8e6)
HELD_BYTES = (16e3, 256e3, 2e6, 8e6)  # of a layer's weights
LAYERS = 3
WEIGHTS = 4  # of a layer


class Layer(nn.Module):
    """Weights that hardly take time to compute with.

    Args:
        elements: Of all weights together.
    """

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.ones(elements // WEIGHTS) for _ in range(WEIGHTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a number that depends on every weight."""
        for weight in self.weights:
            x = x + weight.sum()
        return x


class RankProber(Prober):
    """Measurements with some ranks at a time, and of what these exchange."""

    def all(self) -> list[Sample]:
        """Return all samples of so many ranks."""
        super().all()
        if self.ranks > 1:
            mesh = DeviceMesh.from_group(self.group, self.device.type)
            self.collectives()
            self.moved(mesh)
            self.overlap()
            self.spread(mesh)
        return self.samples

    def moved(self, mesh: DeviceMesh) -> None:
        """Measure an activation that is summed over the ranks behind a product, its gradient, and the product alone.

        Ranks compute before they meet, as in a model: where they share CPUs, each waits for the one that runs last.
        """
        a = self.random(512, 512)

        def step(x: torch.Tensor, mesh: DeviceMesh | None) -> None:
            a @ a
            made = x * 1
            if mesh is not None:
                terms = DTensor.from_local(made, mesh, [Partial()], run_check=False)
                made = terms.redistribute(placements=[Replicate()]).to_local()
            torch.autograd.backward(made, torch.ones_like(made))

        for size in LINK_BYTES[:3]:
            x = self.random(int(size / 4)).requires_grad_()
            self.add("moved", partial(step, x, None), how="alone", bytes=size)
            self.add("moved", partial(step, x, mesh), how="summed", bytes=size)

    def spread(self, mesh: DeviceMesh) -> None:
        """Measure forward and backward of layers whose weights are whole, replicated, and shared out in two ways."""
        warnings.filterwarnings("ignore", category=FutureWarning)  # torch's own of its own calls
        for size in HELD_BYTES:
            for how in ("whole", "replicated", "shared", "reshared"):
                model = nn.Sequential(*(Layer(int(size / 4)) for _ in range(LAYERS))).to(self.device)
                if how == "replicated":
                    replicate(model, device_mesh=mesh)
                elif how != "whole":
                    for layer in model:
                        fully_shard(layer, mesh=mesh, reshard_after_forward=how == "reshared")
                    fully_shard(model, mesh=mesh)
                self.add("spread", partial(_step, model, self.device), how=how, layers=LAYERS, bytes=LAYERS * size)
                if how == "shared" and size == HELD_BYTES[0]:
                    self.add_update(list(model.parameters()), int(LAYERS * size / 4 / self.ranks), shared=True)

    def collectives(self) -> None:
        """Measure what ranks exchange, by bytes of the whole tensor."""
        for size in LINK_BYTES:
            numel = int(size / 4 / self.ranks) * self.ranks
            whole = self.random(numel)
            part = self.random(numel // self.ranks)
            calls = {
                "all_reduce": partial(distributed.all_reduce, whole, group=self.group),
                "all_gather": partial(distributed.all_gather_into_tensor, whole, part, group=self.group),
                "reduce_scatter": partial(distributed.reduce_scatter_tensor, part, whole, group=self.group),
            }
            for name, call in calls.items():
                self.add(name, call, bytes=numel * 4)

    def overlap(self) -> None:
        """Measure an all-reduce behind matrix products, beside each of them alone."""
        a = self.random(512, 512)
        sent = self.random(1 << 20)

        def work() -> None:
            for _ in range(2):
                a @ a

        def both() -> None:
            waited = distributed.all_reduce(sent, group=self.group, async_op=True)
            work()
            waited.wait()

        self.add("overlap", both, part="both")
        self.add("overlap", work, part="compute")
        self.add("overlap", partial(distributed.all_reduce, sent, group=self.group), part="communication")


def _step(model: nn.Module, device: torch.device) -> None:
    model(torch.zeros((), device=device)).backward()
    model.zero_grad()


def counts(ranks: int) -> list[int]:
    """Return the numbers of ranks that are measured: powers of two, and all."""
    return sorted({1 << power for power in range(ranks.bit_length())} | {ranks})


def main(cpus: float) -> None:
    """Measure with 1, 2, 4 ... ranks up to all of the trial; rank 0 writes the samples.

    Args:
        cpus: CPUs of the trial, which its ranks share.
    """
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if ranks > 1:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    samples = measured(ranks, device, cpus)
    if not ranks > 1 or distributed.get_rank() == 0:
        found = {"device": device_facts(device, cpus), "samples": samples}
        Path(SAMPLES_FILE).write_text(json.dumps(found), encoding="utf-8")
    if ranks > 1:
        distributed.destroy_process_group()


def measured(ranks: int, device: torch.device, cpus: float) -> list[Sample]:
    """Return the samples of all numbers of ranks; this one works where it is among the first of them."""
    samples: list[Sample] = []
    rank = distributed.get_rank() if ranks > 1 else 0
    for count in counts(ranks):
        group = distributed.new_group(list(range(count))) if ranks > 1 else None
        torch.set_num_threads(max(1, math.ceil(cpus / count)))
        if rank < count:
            samples += RankProber(count, group, device, cpus).all()
        if ranks > 1:
            distributed.barrier()
    return samples
