"""Addresses and GPUs of a node, as its pods get them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tests.labs.kubernetes.nodes.pod_run import PodRun


class Allocation:
    """Gives each pod an address that no other has, and GPUs that no other has.

    Args:
        number: Of the node, from 1: it gives addresses 10.80.(16 * number).1 and up.
        gpus: How many fake ones it has.
    """

    def __init__(self, number: int, gpus: int) -> None:
        self._first_block = number * 16
        self._gpus = gpus
        self._addresses = itertools.count()

    def address(self, runs: Iterable[PodRun]) -> str:
        """Return the next address that is free."""
        taken = {run.sandbox.address for run in runs if not run.done}
        while True:
            block, rest = divmod(next(self._addresses), 250)
            found = f"10.80.{self._first_block + block % 16}.{rest + 1}"
            if found not in taken:
                return found

    def gpus(self, runs: Iterable[PodRun], count: int) -> list[int]:
        """Return the first GPUs that are free."""
        taken: set[int] = set()
        for run in runs:
            taken.update(() if run.done else run.sandbox.gpus)
        return [number for number in range(self._gpus) if number not in taken][:count]
