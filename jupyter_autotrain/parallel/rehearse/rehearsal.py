"""The entry point of a rehearsal: which ranks run, one after another, and what they are compared for.

A cell is rehearsed in a trial of one process.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final

from torch import distributed

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


_FILE: Final = "cell"  # in messages


def rehearse_cell(source: str, ranks: int, names: Mapping[str, object]) -> None:
    """Run two steps of a cell as several of its ranks, and print what was found.

    Args:
        source: The cell as captured.
        ranks: Number of its workers.
        names: What the trial gives a cell.

    Raises:
        PlanError: The first fault that was found.
    """
    code = compile(source, _FILE, "exec", dont_inherit=True)

    def loop() -> None:
        main = ModuleType("__main__")  # where copied objects look for the classes that the cell defines
        vars(main).update(_names_of_rank(names))
        own = sys.modules[main.__name__]
        sys.modules[main.__name__] = main
        try:
            exec(code, vars(main))  # noqa: S102 - running the user's cell is the purpose
        finally:
            sys.modules[main.__name__] = own

    found = rehearse(loop, ranks)
    print(found)  # noqa: T201 - the trial's own log
    found.check()


def _names_of_rank(names: Mapping[str, object]) -> dict[str, object]:
    """Return the names of a cell as the rank that is rehearsed has them; it reports nothing."""
    own: dict[str, object] = {
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
        "report": _report,
        "should_stop": lambda: False,
    }
    trial = copy.copy(names["trial"])
    vars(trial).update(own)
    return {**names, **own, "trial": trial}


def _report(*_values: object, **_metrics: object) -> None:
    """Report nothing."""
