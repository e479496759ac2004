"""Measure the wait for a slider of the plan preview: plan anew with the instant search, and lay out the view.

The models of `04_plan_a_split.ipynb` and one for 64 devices, from roomy to barely enough; a setting in which
nothing fits is answered too. Limit: 0.2 s from the slider to the answer.

Run: python benchmarks/replan.py
"""

from __future__ import annotations

import json
import statistics
import time

from jupyter_autotrain import plan
from jupyter_autotrain.errors import AutotrainError
from tests.example_graphs import gpt, llama

LIMIT_S = 0.2
LLAMA_3_8B = {"width": 4096, "layers": 32, "heads": 32, "sequence": 4096, "vocabulary": 128256, "hidden": 14336}
SMALL = {"width": 256, "layers": 4, "heads": 8, "sequence": 128, "vocabulary": 1024}
DEEP = {"width": 1024, "layers": 48, "heads": 16, "sequence": 512, "vocabulary": 32000}
ROWS = (
    ("tiny GPT, 8 devices", gpt(batch=32, **SMALL), "8xA100", (1, 4, 8), (1e9, 80e9)),
    ("48 layers, 64 devices", gpt(batch=64, **DEEP), "8x8xA100", (8, 48, 64, 512), (8e9, 40e9)),
    ("Llama-3-8B, 2x8xH100", llama(batch=16, **LLAMA_3_8B), "2x8xH100", (8, 12, 16, 32, 64), (20e9, 40e9, 80e9)),
)


def main() -> None:
    for name, graph, cluster, devices, memories in ROWS:
        first = plan(graph, None, cluster, search="recursive_programming")
        taken, refused = [], 0
        for count in devices:
            for memory in memories:
                for bandwidth in (0.25, 1.0, 4.0):
                    began = time.perf_counter()
                    try:
                        json.dumps(first.what_if(bandwidth=bandwidth, memory=memory, devices=count).view())
                    except AutotrainError:
                        refused += 1
                    taken.append(time.perf_counter() - began)
        print(
            f"{name}: {len(taken)} settings ({refused} refused), median {statistics.median(taken) * 1e3:.0f} ms, "
            f"slowest {max(taken) * 1e3:.0f} ms; limit {LIMIT_S * 1e3:.0f} ms: {max(taken) / LIMIT_S:.2f}"
        )


if __name__ == "__main__":
    main()
