"""The rehearsal of a cell, in a trial of one process."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

from torch import distributed

from jupyter_autotrain.parallel.rehearse.rehearsal import rehearse

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
        exec(code, _names_of_rank(names))  # noqa: S102 - running the user's cell is the purpose

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
