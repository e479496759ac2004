"""Whole plans (data, tensor, sequence, ZeRO, pipeline, recompute, microbatches) under a hard memory limit.

Each by the exact search and beside it by the instant one. Peer, measured: Galvatron 2.4.1 takes 119.7 and 75.9 CPU s
for Llama-2-7B on 8 GPUs at 38 and 20 GB, from GPU profiles.

Run: python benchmarks/search_whole_plan.py
"""

from __future__ import annotations

import resource
import time

from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import Method, SearchLimits, SearchRequest, Solution, solve
from tests.example_graphs import gpt, llama

LLAMA_2_7B = {"width": 4096, "layers": 32, "heads": 32, "sequence": 2048, "vocabulary": 32000, "hidden": 11008}
LLAMA_3_8B = {"width": 4096, "layers": 32, "heads": 32, "sequence": 4096, "vocabulary": 128256, "hidden": 14336}
LLAMA_3_70B = {"width": 8192, "layers": 80, "heads": 64, "sequence": 4096, "vocabulary": 128256, "hidden": 28672}
GPT_3 = {"width": 12288, "layers": 96, "heads": 96, "sequence": 2048, "vocabulary": 51200}


def timed(graph: OpGraph, cluster: str, request: SearchRequest) -> tuple[Solution, float]:
    began = time.process_time()
    plan = solve(graph, cluster, request)
    return plan, time.process_time() - began


def run(name: str, graph: OpGraph, cluster: str, memory_gib: float, limit_s: float = 0.0, peer_s: float = 0.0) -> None:
    limits = SearchLimits(memory_bytes=memory_gib * 2**30)
    plan, taken_s = timed(graph, cluster, SearchRequest(limits=limits))
    quick, quick_s = timed(
        graph, cluster, SearchRequest(limits=limits, search=Method.RECURSIVE_PROGRAMMING, baselines=False)
    )
    limit = f" (limit {limit_s:g})" if limit_s else ""
    peer = f"; {peer_s / taken_s:.0f}x faster than Galvatron" if peer_s else ""
    print(
        f"{name} on {cluster} at {memory_gib:g} GiB: {taken_s:.2f} CPU s{limit}, gap {plan.gap:.4f}, "
        f"step {plan.cost.step_s:.3f} s, {plan.cost.peak_memory_bytes / 2**30:.1f} GiB, {plan.decision.mesh}, "
        f"{len(plan.decision.stages)} stages, {plan.decision.microbatches} microbatches{peer}; "
        f"instant {quick.cost.step_s / plan.cost.step_s:.3f} of it in {quick_s * 1e3:.0f} ms"
    )


def main() -> None:
    small = prepare(llama(batch=8, **LLAMA_2_7B))
    run("Llama-2-7B", small, "8xA100-40GB", 38, 2.0, 119.7)
    run("Llama-2-7B", small, "8xA100-40GB", 20, 2.0, 75.9)
    run("Llama-3-8B", prepare(llama(batch=512, **LLAMA_3_8B)), "8xA100-40GB", 38)
    run("Llama-3-70B", prepare(llama(batch=32, **LLAMA_3_70B)), "2x8xH100", 80)
    run("Llama-3-70B", prepare(llama(batch=512, **LLAMA_3_70B)), "8x8xH100", 80)
    run("GPT-3 175B", prepare(gpt(batch=1536, **GPT_3)), "128x8xA100-80GB", 80, 10.0)
    print(f"most memory of the searches: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
