"""Whole plans (data, tensor, sequence, ZeRO, pipeline, recompute, microbatches) under a hard memory limit.

Peer, measured: Galvatron 2.4.1 takes 119.7 and 75.9 CPU s for Llama-2-7B on 8 GPUs at 38 and 20 GB, from GPU profiles.

Run: python benchmarks/search_whole_plan.py
"""

from __future__ import annotations

import time

from jupyter_autotrain.parallel.graph.build import gpt, llama
from jupyter_autotrain.parallel.graph.fold import fold
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search import Limits, Question, solve

REPEATS = 2


def run(name: str, graph: OpGraph, cluster: str, memory_gib: float, limits: tuple[float, float]) -> None:
    limit_s, peer_s = limits
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        plan = solve(graph, cluster, Question(limits=Limits(memory_bytes=memory_gib * 2**30)))
        taken.append(time.process_time() - began)
    peer = f"; {peer_s / min(taken):.0f}x faster than Galvatron" if peer_s else ""
    print(
        f"{name} on {cluster} at {memory_gib:g} GiB: {min(taken):.2f} CPU s (limit {limit_s:g}), gap {plan.gap:.4f}, "
        f"step {plan.cost.step_s:.3f} s, {plan.cost.peak_memory_bytes / 2**30:.1f} GiB, {plan.mesh}, "
        f"{len(plan.stages)} stages, {plan.microbatches} microbatches{peer}"
    )


def main() -> None:
    sizes = {"width": 4096, "layers": 32, "heads": 32, "sequence": 2048, "vocabulary": 32000, "hidden": 11008}
    small = fold(fuse(llama(batch=8, **sizes)))
    run("Llama-2-7B", small, "8xA100-40GB", 38, (2.0, 119.7))
    run("Llama-2-7B", small, "8xA100-40GB", 20, (2.0, 75.9))
    large = {"width": 12288, "layers": 96, "heads": 96, "sequence": 2048, "vocabulary": 51200}
    run("GPT-3 175B", fold(fuse(gpt(batch=1536, **large))), "128x8xA100-80GB", 80, (10.0, 0.0))


if __name__ == "__main__":
    main()
