"""The instant search from 8 to 65,536 devices, and how far it is from exact where exact is known.

Peer: MindSpore 2.10's double recursion, which knows powers of two up to 1,024; it took 1.1 s for the same GPT by its
own log on a quiet machine. With an interpreter that has it (also by the variable AUTOTRAIN_MINDSPORE_PYTHON) its
compiler runs in the same run, of which that search is a part.

Run: python benchmarks/search_instant.py [--mindspore-python PATH]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.search import Method, SearchRequest, StrategySpace, solve
from tests.example_graphs import gpt, llama, mlp

MINDSPORE_SEARCH_S, LIMIT_S = 1.1, 0.05
CLUSTERS = ("8xA100", "2x6xA100", "8x8xA100", "125x8xA100", "128x8xA100", "8192x8xA100")
EXACT_UP_TO = 64
REPEATS = 5


def models(batch: int) -> dict[str, OpGraph]:
    sizes = {"width": 1024, "layers": 48, "heads": 16, "sequence": 512, "vocabulary": 32000}
    graphs = {"gpt": gpt(batch=batch, **sizes), "llama": llama(batch=batch, **sizes)}
    graphs["mlp"] = mlp(width=4096, layers=48, batch=64 * batch)
    return {name: fold(fuse(graph)) for name, graph in graphs.items()}


def peer_compile_s(python: str) -> float:
    """CPU seconds of the peer's compiler, its search included."""
    command = [python, str(Path(__file__).parent / "_mindspore_peer.py"), "8", "48"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["compile_cpu_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mindspore-python", default=os.environ.get("AUTOTRAIN_MINDSPORE_PYTHON", ""))
    python = parser.parse_args().mindspore_python
    if python:
        print(f"MindSpore 2.10 compiles the GPT for 8 devices, search included, in {peer_compile_s(python):.2f} CPU s")
    exact = SearchRequest(space=StrategySpace.placements(), baselines=False)
    instant = replace(exact, search=Method.RECURSIVE_PROGRAMMING)
    for cluster in CLUSTERS:
        devices = solve(mlp(width=8, layers=1, batch=8), cluster, instant).decision.mesh.devices
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
                + f"; {MINDSPORE_SEARCH_S / min(taken):.0f}x faster than double recursion there"
            )


if __name__ == "__main__":
    main()
