"""The one queue of a home: in which order the waiting trials of all experiments are tried.

First by priority. Among equals by weighted fair share: the next trial is of the experiment that holds the least of what
it wants, measured by its weight. So of 8 slots, experiments that want 10 and 30 get 2 and 6; with weights 3 and 1 they
get 4 and 4. Of equal claims the older experiment comes first, of its trials the one with the lower number. What a trial
that is tried does not get is kept for it by `resources`, so none starves that is first in its turn.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Claim:
    """Claim of an experiment: what it holds and wants.

    Attributes:
        id: The experiment.
        priority: Those with a higher one come first.
        weight: How much of what it wants it gets, beside others of its priority.
        held: How many of its trials have a place.
        waiting: Those that have none, in order.
        wanted: How many of its trials have a place or could have one now.
    """

    id: str
    priority: int = 0
    weight: float = 1.0
    held: int = 0
    waiting: deque[int] = field(default_factory=deque)
    wanted: int = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = self.held + len(self.waiting)

    @property
    def rank(self) -> tuple[int, float]:
        """The place in the queue, the least first."""
        return -self.priority, self.held / (self.weight * max(self.wanted, 1))


def in_turn(claims: Sequence[Claim]) -> Iterator[tuple[Claim, int]]:
    """Yield the waiting trials in the order in which they are tried; O(log experiments) for each.

    Args:
        claims: Of all experiments, the oldest first. The caller counts `held` up for each trial that starts.
    """
    heap = [(claim.rank, index) for index, claim in enumerate(claims) if claim.waiting]
    heapq.heapify(heap)
    while heap:
        _, index = heapq.heappop(heap)
        claim = claims[index]
        yield claim, claim.waiting.popleft()
        if claim.waiting:
            heapq.heappush(heap, (claim.rank, index))
