"""Measure what one `report()` costs the training, against the limit of 10 microseconds."""

from __future__ import annotations

import statistics
import tempfile
import time

from jupyter_autotrain.agent.ranks.reporter import Reporter

LIMIT_US = 10.0
CALLS = 20_000


def cost_us(report: Reporter, **metrics: float) -> float:
    """Median cost of one call, in microseconds."""
    took = []
    for step in range(CALLS):
        begun = time.perf_counter_ns()
        report(step=step, **metrics)
        took.append(time.perf_counter_ns() - begun)
    return statistics.median(took) / 1000


def main() -> None:
    """Measure one metric and four, each to a file of its own."""
    for names in (("loss",), ("loss", "acc", "lr", "grad_norm")):
        with tempfile.TemporaryDirectory() as folder:
            median = cost_us(Reporter(folder), **{name: 0.123456789 * (k + 1) for k, name in enumerate(names)})
        print(f"report() of {len(names)}: median {median:.2f} us; limit {LIMIT_US:g}; ratio {LIMIT_US / median:.1f}")


if __name__ == "__main__":
    main()
