"""Measurements of a place, as the script of a trial that runs there: it needs torch, and nothing of this package.

For each number of ranks, as many work at the same time while the others wait, so that what they share (cores, memory,
links) is measured as plans meet it. A call is timed in batches that are longer than a time slice of the system, so that
ranks that share a core are seen to. A figure is the median of the batches, and the mean over the ranks. The samples go
to a JSON file in the trial's folder; `fitting` makes constants of them.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

SAMPLES_FILE = "measured.json"
BATCH_S = 0.02  # longer than a time slice
BUDGET_S = 0.08  # of a figure
LEAST_BATCHES = 3
MOST_S = 15.0  # of all figures of a number of ranks; on a busy machine later ones are measured once
LONGEST_S = 0.04  # of one call, after which no larger size is measured
LINK_BYTES = (4e3, 256e3, 2e6, 8e6)
Sample = dict[str, Any]
Call = Callable[[], object]


class Prober:
    """Measurements with some ranks at a time.

    Args:
        ranks: How many work.
        group: Their process group; None for one.
        device: That of this rank.
    """

    def __init__(self, ranks: int, group: Any, device: torch.device) -> None:  # noqa: ANN401 - torch's own class is not public
        self.ranks = ranks
        self.group = group
        self.device = device
        self.samples: list[Sample] = []
        self.ends_s = time.monotonic() + MOST_S

    def all(self) -> list[Sample]:
        """Return all samples of so many ranks."""
        for dtype in (torch.float32, torch.bfloat16):
            self.products(dtype)
        self.attention()
        self.streams()
        self.update()
        self.launches()
        if self.ranks > 1:
            self.collectives()
            self.overlap()
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
        """Measure attention of rising length, with four heads of 64."""
        for length in (64, 128, 256, 512, 1024, 2048, 4096):
            q = self.random(4, 4, length, 64)
            work = {"flops": 4.0 * 16 * length * length * 64, "bytes": 4 * q.numel() * 4, "elements": q.numel()}
            call = partial(nn.functional.scaled_dot_product_attention, q, q, q)
            if self.add("attention", call, dtype="float32", **work) > LONGEST_S:
                return

    def streams(self) -> None:
        """Measure kernels that move bytes rather than compute: each reads and writes."""
        for numel in (1 << 18, 1 << 21):
            x = self.random(numel // 512, 512)
            out = torch.empty_like(x)
            kernels = {
                "add": (3, partial(torch.add, x, x, out=out)),
                "gelu": (2, partial(nn.functional.gelu, x)),
                "softmax": (2, partial(torch.softmax, x, -1)),
                "norm": (2, partial(nn.functional.layer_norm, x, (512,))),
            }
            for name, (touched, call) in kernels.items():
                self.add("stream", call, bytes=touched * 4 * numel, kernel=name)

    def update(self) -> None:
        """Measure a step of Adam on 32-bit weights, and on many small ones."""
        for count, numel in ((1, 1 << 21), (4, 1 << 19), (50, 64)):
            weights = [nn.Parameter(self.random(numel)) for _ in range(count)]
            for weight in weights:
                weight.grad = self.random(numel)
            optimizer = torch.optim.AdamW(weights)
            self.add("update", optimizer.step, weights=count, elements=count * numel)

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
            for _ in range(10):
                a @ a

        def both() -> None:
            waited = distributed.all_reduce(sent, group=self.group, async_op=True)
            work()
            waited.wait()

        self.add("overlap", both, part="both")
        self.add("overlap", work, part="compute")
        self.add("overlap", partial(distributed.all_reduce, sent, group=self.group), part="communication")

    def add(self, kind: str, call: Call, **facts: object) -> float:
        """Measure a call and keep its sample; return its seconds, the same on all ranks that work."""
        call()
        once_s = self.mean(_seconds(call, 2, self.device))
        calls = max(1, round(BATCH_S / once_s))
        batches = max(LEAST_BATCHES, round(BUDGET_S / (calls * once_s)))
        if self.mean(float(time.monotonic() > self.ends_s)):
            batches = 1
        times = [_seconds(call, calls, self.device) for _ in range(batches)]
        seconds = self.mean(statistics.median(times))
        self.samples.append({"kind": kind, "ranks": self.ranks, "seconds": seconds, **facts})
        return seconds

    def mean(self, value: float) -> float:
        """Return the mean over the ranks that work."""
        if self.ranks == 1:
            return value
        total = torch.tensor([value], dtype=torch.float64)
        distributed.all_reduce(total, group=self.group)
        return float(total.item()) / self.ranks

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
            samples += Prober(count, group, device).all()
        if ranks > 1:
            distributed.barrier()
    return samples
