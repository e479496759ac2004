"""The instant search from 8 to 65,536 devices, and how far it is from exact where exact is known.

Peer, measured: MindSpore 2.10's double recursion takes 1.1 s for 48 layers, at most 1,024 devices, powers of two only.

Run: python benchmarks/search_instant.py
"""

from __future__ import annotations

import time
from dataclasses import replace

from jupyter_autotrain.parallel.graph.build import gpt, llama, mlp
from jupyter_autotrain.parallel.graph.fold import fold
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search import Method, Question, Space, solve

MINDSPORE_CPU_S, LIMIT_S = 1.1, 0.05
CLUSTERS = ("8xA100", "2x6xA100", "8x8xA100", "125x8xA100", "128x8xA100", "8192x8xA100")
EXACT_UP_TO = 64
REPEATS = 5


def models(batch: int) -> dict[str, OpGraph]:
    sizes = {"width": 1024, "layers": 48, "heads": 16, "sequence": 512, "vocabulary": 32000}
    graphs = {"gpt": gpt(batch=batch, **sizes), "llama": llama(batch=batch, **sizes)}
    graphs["mlp"] = mlp(width=4096, layers=48, batch=64 * batch)
    return {name: fold(fuse(graph)) for name, graph in graphs.items()}


def main() -> None:
    exact = Question(space=Space.placements(), baselines=False)
    instant = replace(exact, search=Method.RECURSIVE_PROGRAMMING)
    for cluster in CLUSTERS:
        devices = solve(mlp(width=8, layers=1, batch=8), cluster, instant).mesh.devices
        for name, graph in models(max(96, devices)).items():
            taken = []
            for _ in range(REPEATS):
                began = time.process_time()
                found = solve(graph, cluster, instant)
                taken.append(time.process_time() - began)
            ratio = found.cost.step_s / solve(graph, cluster, exact).cost.step_s if devices <= EXACT_UP_TO else None
            print(
                f"{name:6} on {cluster:12}: {min(taken):.3f} CPU s (limit {LIMIT_S}), {found.cost.step_s * 1e3:8.2f} ms"
                + (f", {ratio:.3f} of exact" if ratio else "")
                + f"; {MINDSPORE_CPU_S / min(taken):.0f}x faster than double recursion there"
            )


if __name__ == "__main__":
    main()
