"""The entry point of a rehearsal: which ranks run, one after another, and what they are compared for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.rehearse.outcome import Rehearsal
from jupyter_autotrain.parallel.rehearse.recording import recorded

MOST: Final = 8  # ranks that are rehearsed; of more, the first, the last and some between


def ranks_to_rehearse(ranks: int) -> tuple[int, ...]:
    """Return the ranks that run: all, or of many the first two, one in the middle and the last."""
    if ranks <= MOST:
        return tuple(range(ranks))
    return 0, 1, ranks // 2, ranks - 1


def rehearse(loop: Callable[[], object], ranks: int, chosen: Sequence[int] = ()) -> Rehearsal:
    """Run two steps of a training loop as each of some ranks, one after another in this process.

    Args:
        loop: Makes model, optimizer and loader, and trains; is called once per rank, with `RANK` and `WORLD_SIZE` set.
        ranks: Number of ranks.
        chosen: Ranks that run; unless given, all up to eight, of more some.

    Raises:
        PlanError: There are no ranks, or this process is in a process group.
    """
    if ranks < 1:
        raise PlanError(f"A rehearsal with {ranks} ranks.", "At least one.", "Give the number of ranks.")
    numbers = tuple(chosen) or ranks_to_rehearse(ranks)
    recordings = [recorded(loop, rank, ranks) for rank in numbers]
    return Rehearsal.of(ranks, recordings)
