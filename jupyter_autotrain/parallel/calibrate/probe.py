"""Measurements of a place, as the script of a trial that runs there: it needs torch, and nothing of this package.

For each number of ranks, as many work at the same time while the others wait, so that what they share (cores, memory,
links) is measured as plans meet it. A call is timed in batches, which all ranks begin together. Where ranks share a
core, a batch is longer than a time slice of the system. A figure is the mean over the ranks, of the batch in which that
is least: other programs only ever add to it. The samples go to a JSON file in the trial's folder; `fitting` makes
constants of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import distributed, nn

SAMPLES_FILE = "measured.json"
BATCH_S = 0.001
SHARED_BATCH_S = 0.02  # longer than a time slice
BUDGET_S = 0.08  # of a figure
LEAST_BATCHES = 3
MOST_S = 15.0  # of all figures of a number of ranks; on a busy machine later ones are measured once
LONGEST_S = 0.04  # of one call, after which no larger size is measured
Sample = dict[str, Any]
Call = Callable[[], object]
Kernel = Callable[[torch.Tensor], torch.Tensor]
KERNELS: dict[str, Kernel] = {
    "native_dropout": partial(nn.functional.dropout, p=0.1),
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "_softmax": partial(torch.softmax, dim=-1),
    "_log_softmax": partial(torch.log_softmax, dim=-1),
    "native_layer_norm": partial(nn.functional.layer_norm, normalized_shape=(512,)),
    "rms_norm": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "clone": lambda x: x.view(-1, 64, 8, 64).transpose(1, 2).contiguous(),
}
"""Op of a traced model, as `graph.Op.kind` names it → what runs it."""


class Prober:
    """Measurements with some ranks at a time.

    Args:
        ranks: How many work.
        group: Their process group; None for one.
        device: That of this rank.
        cpus: CPUs that all ranks share.
    """

    def __init__(self, ranks: int, group: Any, device: torch.device, cpus: float) -> None:  # noqa: ANN401 - torch's own class is not public
        self.ranks = ranks
        self.group = group
        self.device = device
        self.batch_s = SHARED_BATCH_S if device.type == "cpu" and ranks > cpus else BATCH_S
        self.samples: list[Sample] = []
        self.ends_s = time.monotonic() + MOST_S

    def all(self) -> list[Sample]:
        """Return all samples of so many ranks."""
        for dtype in (torch.float32, torch.bfloat16):
            self.products(dtype)
        self.attention()
        self.streams()
        self.kernels()
        self.update()
        self.launches()
        return self.samples

    def products(self, dtype: torch.dtype) -> None:
        """Measure matrix products of rising size, as of a layer on many tokens."""
        for rows in (128, 256, 512, 1024, 2048, 4096, 8192):
            width = max(128, rows // 2)
            a = self.random(rows, width, dtype=dtype)
            b = self.random(width, rows, dtype=dtype)
            moved = (a.numel() + b.numel() + rows * rows) * a.element_size()
            work = {"flops": 2.0 * rows * rows * width, "bytes": moved, "elements": rows * rows}
            if self.add("matmul", partial(torch.matmul, a, b), dtype=str(dtype)[6:], **work) > LONGEST_S:
                return

    def attention(self) -> None:
        """Measure attention of rising length, with heads of 32 and of 64, with dropout and without."""
        for length, width in ((64, 64), (128, 32), (256, 64), (512, 32), (1024, 64), (2048, 64), (4096, 64)):
            q = self.random(4, 4, length, width).requires_grad_()
            scores = 16 * length * length
            work = {"flops": 4.0 * scores * width, "elements": scores}
            for dropout in (0.0, 0.1):
                call = partial(nn.functional.scaled_dot_product_attention, q, q, q, dropout_p=dropout)
                longest_s = self.add_both("attention", call, q, dropout=dropout, **work)
            if longest_s > LONGEST_S:
                return

    def streams(self) -> None:
        """Measure kernels that only move bytes."""
        for numel in (1 << 17, 1 << 19, 1 << 21):
            x = self.random(numel // 512, 512)
            out = torch.empty_like(x)
            self.add("stream", partial(torch.add, x, x, out=out), bytes=3 * 4 * numel)
            self.add("stream", partial(torch.mul, x, 0.5, out=out), bytes=2 * 4 * numel)

    def kernels(self) -> None:
        """Measure kernels that may take longer than their bytes do."""
        x = self.random(1024, 512).requires_grad_()
        for op, kernel in KERNELS.items():
            self.add_both("kernel", partial(kernel, x), x, op=op, elements=x.numel())

    def update(self) -> None:
        """Measure a step of Adam on 32-bit weights, and on many small ones."""
        for count, numel in ((1, 1 << 21), (4, 1 << 19), (50, 64)):
            self.add_update([nn.Parameter(self.random(numel)) for _ in range(count)], count * numel)

    def add_update(self, weights: list[nn.Parameter], elements: int, *, shared: bool = False) -> None:
        """Measure a step of Adam on weights, of which this rank has so many elements."""
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer = torch.optim.AdamW(weights)
        self.add("update", optimizer.step, weights=len(weights), elements=elements, shared=shared)

    def launches(self) -> None:
        """Measure a chain of kernels with no work, forward and backward."""
        x = self.random(8).requires_grad_()
        links = 20

        def chain() -> None:
            y = x
            for _ in range(links):
                y = torch.sin(y)
            y.sum().backward()  # type: ignore[no-untyped-call] # torch's

        self.add("launch", chain, kernels=3 * links)

    def add(self, kind: str, call: Call, **facts: object) -> float:
        """Measure a call and keep its sample; return its seconds, the same on all ranks that work."""
        call()
        (once_s,) = self.mean([_seconds(call, 2, self.device)])
        calls = max(1, round(self.batch_s / once_s))
        batches = max(LEAST_BATCHES, round(BUDGET_S / (calls * once_s)))
        (late,) = self.mean([float(time.monotonic() > self.ends_s)])
        times = []
        for _ in range(1 if late else batches):
            if self.ranks > 1:
                distributed.barrier(group=self.group)
            times.append(_seconds(call, calls, self.device))
        seconds = min(self.mean(times))
        self.samples.append({"kind": kind, "ranks": self.ranks, "seconds": seconds, **facts})
        return seconds

    def add_both(self, kind: str, call: Callable[[], torch.Tensor], x: torch.Tensor, **facts: object) -> float:
        """Measure a call, and the gradient of its input; return the seconds of the longer one."""
        made = call()
        back = partial(torch.autograd.grad, made, x, torch.ones_like(made), retain_graph=True)
        forward_s = self.add(kind, call, side="forward", **facts)
        return max(forward_s, self.add(kind, back, side="backward", **facts))

    def mean(self, values: list[float]) -> list[float]:
        """Return the means over the ranks that work."""
        if self.ranks == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(total, group=self.group)
        return (total / self.ranks).tolist()

    def random(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return random numbers on this rank's device."""
        return torch.randn(*shape, device=self.device).to(dtype)


def _seconds(call: Call, calls: int, device: torch.device) -> float:
    """Return the mean seconds of some calls, one after another; on a GPU between two events."""
    if device.type == "cuda":
        return _gpu_seconds(call, calls)
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def _gpu_seconds(call: Call, calls: int) -> float:
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call] # torch's
    began.record()
    for _ in range(calls):
        call()
    ended.record()
    ended.synchronize()
    return float(began.elapsed_time(ended)) / 1e3 / calls


def device_facts(device: torch.device, cpus: float) -> Sample:
    """Return what the device of this rank says of itself."""
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        facts = {"name": found.name, "memory_bytes": found.total_memory, "multiprocessors": found.multi_processor_count}
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        facts = {"name": "CPU", "memory_bytes": total, "multiprocessors": 1}
    return {**facts, "type": device.type, "cpus": cpus, "torch": torch.__version__}
