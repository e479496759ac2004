"""Measure how long the manager's queue takes for a trial that starts, with many that wait on a large cluster.

python benchmarks/queue_turns.py [--waiting 10000] [--experiments 100] [--nodes 125]
"""

from __future__ import annotations

import argparse
import time
from collections import deque

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.manager.queue.reservations import Reservation
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest
from jupyter_autotrain.manager.queue.turns import Claim, in_turn
from jupyter_autotrain.manager.resources import ResourceAllocator

_GPUS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=125)
    options = parser.parse_args()
    nodes = [
        Node(f"n{n}", 64.0, None, tuple(Accelerator(g, f"{n}/{g}") for g in range(_GPUS))) for n in range(options.nodes)
    ]
    allocator = ResourceAllocator(Inventory(tuple(nodes)), backend="cluster")
    each = options.waiting // options.experiments
    claims = [Claim(str(n), n % 3, waiting=deque(range(1, each + 1))) for n in range(options.experiments)]
    begun_s = time.process_time()
    started = _round(allocator, claims)
    first_s = time.process_time() - begun_s
    print(f"{options.waiting} trials of {options.experiments} experiments, {options.nodes * _GPUS} devices:")
    print(f"  {started} start on an empty cluster: {first_s / started * 1e3:.2f} ms each")


def _round(allocator: ResourceAllocator, claims: list[Claim]) -> int:
    """Go through the queue once, until the cluster is full for an experiment of each size; gives the starts."""
    allocator.table.waiting.clear()
    started = 0
    full: set[int] = set()
    for claim, number in in_turn(claims):
        gpus = 1 + int(claim.id) % 4
        if gpus in full:
            continue
        request = ResourceRequest(
            f"{claim.id}-{number}-1", f"trial {number} of e{claim.id}", Resources(gpus=gpus), AcceleratorPolicy()
        )
        answer = allocator.try_allocate(request)
        if isinstance(answer, Reservation):
            allocator.table.reserve(answer)
            claim.held += 1
            started += 1
        else:
            allocator.wait(request, answer)
            full.add(gpus)
    return started


if __name__ == "__main__":
    main()
