"""From the text of a cell to a draft, which the pipeline of the client sends.

With `--rehearse` the cell becomes a trial of one process that runs two steps as several of its workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import backends, capture, header
from jupyter_autotrain.cell import notebook, planning
from jupyter_autotrain.client.submission import Draft, capture_settings
from jupyter_autotrain.errors import AutotrainError

if TYPE_CHECKING:
    from jupyter_autotrain.parallel.plan import Plan


@dataclass(frozen=True, slots=True)
class CellDraft(Draft):
    """The draft of a cell, with the cell taken apart.

    Attributes:
        parsed: The parts of the cell.
        plan: The plan of its header; None without one.
        runs_plan: Whether the cell runs it.
    """

    parsed: header.ParsedCell
    plan: Plan | None
    runs_plan: bool


def read(  # noqa: PLR0913 - the cell, where it is, and what its entry point gives
    shell: InteractiveShell,
    line: str,
    cell: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    planner: planning.Planner,
    progress: Callable[[int], object] | None = None,
) -> CellDraft:
    """Read the header and capture what the cell needs; nothing is stored.

    Args:
        shell: The shell of the notebook.
        line: The rest of the line after `%%autotrain`.
        cell: The lines below.
        cwd: The notebook's folder.
        environ: The variables of the kernel.
        planner: Makes the plan of a header with `parallel:`.
        progress: Called with the bytes of data captured so far.

    Raises:
        HeaderError: With all faults of the header.
        CaptureError: Something the cell needs cannot be sent, or nothing reports its objective.
        ShipError: The files are too many or too big.
        AutotrainError: There is no plan as the header asks for it.
    """
    parsed = header.parse_cell(line, cell, backends.header_context(cwd, environ))
    names = notebook.namespace(shell, parsed.code)
    plan = planning.cell_plan(parsed.header, names, planner)
    captured = capture.capture(
        parsed.code,
        names if plan is None else {**names, planning.NAME: plan},
        notebook.executed_cells(shell),
        first_line=parsed.code_line,
        progress=progress,
        **capture_settings(parsed.header, cwd),
    )
    origin = notebook.origin(shell, environ)
    name = parsed.header.name or notebook.name(origin)
    runs_plan = plan is not None and planning.check_used(plan, parsed.header, names, captured)
    return CellDraft(parsed.header, captured, name, origin, cwd, environ, parsed, plan, runs_plan)


_SCRIPT = """\
from jupyter_autotrain.parallel.rehearse.rehearsal import rehearse_cell
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
    alone = {"resources": resources, "parallel": None, "trials": 1, "retries": 0, "launcher": "env", "elastic": False}
    header = given.model_copy(update={**judged, **alone})
    script = _SCRIPT.format(source=draft.captured.script, ranks=ranks)
    captured = replace(draft.captured, script=script, source_map=())
    return replace(draft, header=header, captured=captured, name=f"{draft.name}-rehearsal")
