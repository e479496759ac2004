"""Measure the Jupyter server's extension: a long series, a list, the way of a change to a page, and idling.

    python benchmarks/server_api.py [--points 1000000]

A real Jupyter server on the loopback interface, asked over HTTP. Limits: 100 ms for a series of 10^6 points as at most
2,000 points; 100 ms for a page of 50 of 200 experiments with 50 trials each; 150 ms (median) from a row in the store to
the page's message; 0.5 % of CPU while one page follows and nothing happens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import websocket

sys.path.insert(0, str(Path(__file__).parents[1]))

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.store import Ingest
from tests.server.jupyter import Filler, JupyterServer, running_server

SERIES_LIMIT_S, LIST_LIMIT_S, CHANGE_LIMIT_S, IDLE_LIMIT = 0.1, 0.1, 0.15, 0.005
REPEATS, EXPERIMENTS, TRIALS, IDLE_S = 15, 200, 50, 30
_CHUNK = 10_000


def fill_series(filler: Filler, points: int) -> None:
    """One running trial that has reported so many values."""
    filler.experiment("long", name="long", trials=1)
    filler.begin("long", 1)
    values = np.sin(np.arange(points) / 1000)
    for first in range(0, points, _CHUNK):
        filler.report("long", 1, values[first : first + _CHUNK].tolist())


def fill_list(filler: Filler) -> None:
    """Finished experiments of many trials."""
    objective = Objective("val_acc")
    for index in range(EXPERIMENTS):
        experiment = filler.experiment(f"e{index}", name=f"sweep-{index}", trials=TRIALS)
        for number in range(1, TRIALS + 1):
            filler.begin(experiment, number, lr=number / TRIALS)
            filler.end(experiment, number)
        rows = [
            Ingest(experiment, number, 1, "metrics", 1, [("val_acc", 1, 0.0, number / TRIALS)], objective=objective)
            for number in range(1, TRIALS + 1)
        ]
        filler.store.ingest(rows)
        filler.store.close_experiment(experiment, time.time())


def request_s(server: JupyterServer, path: str, **query: object) -> float:
    """Return the median time of a request."""
    times = []
    for _ in range(REPEATS):
        began_s = time.perf_counter()
        server.get(path, **query)
        times.append(time.perf_counter() - began_s)
    return statistics.median(times)


def change_s(filler: Filler, page: websocket.WebSocket) -> float:
    """Return the median time from a point in the store to the message that tells of it."""
    times = []
    for _ in range(30):
        time.sleep(0.21)
        began_s = time.perf_counter()
        filler.report("long", 1, [0.5])
        last_id = filler.store.last_change_id()
        while json.loads(page.recv())["last_id"] < last_id:
            pass
        times.append(time.perf_counter() - began_s)
    return statistics.median(times)


def cpu_share(server: JupyterServer) -> float:
    """Return the share of a core that the server uses while nothing happens."""
    process = psutil.Process(server.process.pid)
    before = process.cpu_times()
    time.sleep(IDLE_S)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / IDLE_S


def tell(what: str, measured: float, limit: float, unit: str, scale: float) -> None:
    """Print a figure with its limit."""
    print(f"{what:<58} {measured * scale:7.2f} {unit}   limit {limit * scale:g} {unit}   ratio {measured / limit:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory(prefix="server-") as folder, running_server(Path(folder)) as server:
        filler = Filler(server)
        fill_series(filler, points)
        fill_list(filler)
        sent = len(server.get("/experiments/long/series", metric="val_acc")["curves"][0]["steps"])
        spent_s = request_s(server, "/experiments/long/series", metric="val_acc")
        tell(f"series of {points:,} points as {sent:,}", spent_s, SERIES_LIMIT_S, "ms", 1000)
        tell("a page of 50 of 200 experiments", request_s(server, "/experiments", limit=50), LIST_LIMIT_S, "ms", 1000)
        tell("the same, by the best value", request_s(server, "/experiments", sort="best"), LIST_LIMIT_S, "ms", 1000)
        tell("the same, filtered", request_s(server, "/experiments", text="-19"), LIST_LIMIT_S, "ms", 1000)
        alone = cpu_share(server)
        address = f"{server.api.replace('http', 'ws', 1)}/changes?token={server.token}&since=999999999"
        page = websocket.create_connection(address, timeout=20)
        page.recv()
        tell("row in the store to message, median of 30", change_s(filler, page), CHANGE_LIMIT_S, "ms", 1000)
        tell(f"CPU of an idle server with one page (without: {alone:.2%})", cpu_share(server), IDLE_LIMIT, "%", 100)
        page.close()
        filler.store.close()


if __name__ == "__main__":
    main()
