"""`%%autotrain --rehearse`: the cell as a trial of one process that runs two steps as several of its workers."""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.cell.submission import CellDraft
from jupyter_autotrain.errors import AutotrainError

_SCRIPT = """\
from jupyter_autotrain.parallel.rehearse.cells import rehearse_cell
rehearse_cell({source!r}, {ranks}, globals())
"""


def rehearsal_of(draft: CellDraft) -> CellDraft:
    """Return what rehearses a cell: the same code and place, one worker, and no objective.

    Raises:
        AutotrainError: The cell has one worker.
    """
    ranks = draft.spec().resources.ranks
    if ranks == 1:
        raise AutotrainError(
            "The cell has one worker, and nothing in it can depend on the rank.",
            "A rehearsal is for cells with several workers.",
            "Ask for them (resources: {workers_per_node: 4}), or run the cell without --rehearse.",
        )
    given = draft.header
    resources = given.resources.model_copy(update={"workers_per_node": 1, "nodes": 1})
    judged = {name: type(given).model_fields[name].default for name in ("objective", "early_stop")}
    alone = {"resources": resources, "trials": 1, "retries": 0, "launcher": "env", "elastic": False}
    header = given.model_copy(update={**judged, **alone})
    script = _SCRIPT.format(source=draft.captured.script, ranks=ranks)
    captured = replace(draft.captured, script=script, source_map=())
    return replace(draft, header=header, captured=captured, name=f"{draft.name}-rehearsal")
