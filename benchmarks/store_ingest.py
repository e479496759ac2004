"""Measure how many metric points per second the store takes in, one commit per batch of 5,000, against the limit."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store

LIMIT_PER_S = 200_000
BATCH, BATCHES, TRIALS = 5_000, 200, 5


def main() -> dict[str, float]:
    """Measure ingest, and the read of a series of 100,000 points; print one line."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Home(Path(folder))) as store:
        store.add_experiment("bench", ExperimentSpec("bench", Bundle()), 0.0)
        rate = BATCH * BATCHES / _ingest_s(store)
        read_s = statistics.median(_read_s(store) for _ in range(5))
    print(
        f"store ingest: {rate:,.0f} points/s = {rate / LIMIT_PER_S:.1f} x the limit of {LIMIT_PER_S:,}; "
        f"reading a series of 100,000 points: {read_s * 1e3:.1f} ms"
    )
    return {"points_per_s": rate, "ratio": rate / LIMIT_PER_S, "read_100k_s": read_s}


def _ingest_s(store: Store) -> float:
    share = BATCH // TRIALS // 2
    elapsed_s = 0.0
    for batch in range(BATCHES):
        steps = range(batch * share, (batch + 1) * share)
        points = [(name, step, 1e9 + step, step / 7) for step in steps for name in ("loss", "accuracy")]
        rows = [Ingest("bench", number, 1, "metrics", batch + 1, points) for number in range(1, TRIALS + 1)]
        begin_s = time.perf_counter()
        store.ingest(rows)
        elapsed_s += time.perf_counter() - begin_s
    return elapsed_s


def _read_s(store: Store) -> float:
    begin_s = time.perf_counter()
    series = store.series("bench", "loss")
    elapsed_s = time.perf_counter() - begin_s
    assert [len(steps) for steps, _ in series.values()] == [BATCH * BATCHES // TRIALS // 2] * TRIALS
    return elapsed_s / TRIALS


if __name__ == "__main__":
    main()
