"""Exact placement search over all mesh shapes, against MindSpore's dynamic programming and an integer program.

Peers, measured: MindSpore 1.0 needs 29.7 CPU s for ONE layer at 64 devices on one mesh; autoparallel's integer program
12.7 to 26.3 CPU s for 12 to 24 layers plus 23 to 40 s to build it. Here: all ordered meshes of up to three axes, the
whole depth, a proved optimum.

Run: python benchmarks/search_exact.py
"""

from __future__ import annotations

import time

from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.search import SearchRequest, StrategySpace, solve
from tests.example_graphs import gpt

MINDSPORE_ONE_LAYER_CPU_S = 29.7
ROWS = ((48, 64, "8x8xA100", 0.5), (96, 1024, "128x8xA100", 3.0))
REPEATS = 5


def main() -> None:
    for layers, batch, cluster, limit_s in ROWS:
        sizes = {"width": 1024, "heads": 16, "sequence": 512, "vocabulary": 32000}
        graph = fold(fuse(gpt(layers=layers, batch=batch, **sizes)))
        asked = SearchRequest(space=StrategySpace.placements(), baselines=False)
        taken = []
        for _ in range(REPEATS):
            began = time.process_time()
            solution = solve(graph, cluster, asked)
            taken.append(time.process_time() - began)
        print(
            f"{layers} layers on {cluster}: {min(taken):.3f} CPU s (limit {limit_s}), gap {solution.gap:.4f}, "
            f"step {solution.cost.step_s * 1e3:.2f} ms on {solution.decision.mesh}; "
            f"{MINDSPORE_ONE_LAYER_CPU_S / min(taken):.0f}x faster than one layer there"
        )


if __name__ == "__main__":
    main()
