"""A program's wish for a cell, fulfilled in a kernel of the notebook: the earlier cells have run, this one is sent.

`prepare` runs before the first cell, so that none of them submits anything by a magic; `answer` after the last.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.cell import planning, preview
from jupyter_autotrain.cell.magics import AutotrainMagics
from jupyter_autotrain.client.agent_request import CellRequest, refusal, write_answer

_EXTENSION: Final = "jupyter_autotrain"


def prepare() -> None:
    """Let `%autotrain` and `%%autotrain` of the cells above do nothing, whoever loads the extension."""
    shell = _shell()

    def autotrain(line: str, cell: str | None = None) -> None:
        """Do nothing: only the cell that was asked for is submitted."""

    shell.magics_manager.register_function(autotrain, magic_kind="line_cell")
    assert shell.extension_manager is not None
    shell.extension_manager.loaded.add(_EXTENSION)


def answer(folder: str) -> None:
    """Fulfil the wish that lies in a folder, and keep the answer there, also where it is an error."""
    try:
        found = _answer(CellRequest.read(Path(folder)))
    except BaseException as error:
        write_answer(Path(folder), refusal(error))
        raise
    write_answer(Path(folder), found)


def _answer(request: CellRequest) -> JsonObject:
    magics = AutotrainMagics(_shell())
    command = magics.command()
    draft = magics.read(command, request.line, request.body)
    origin = replace(draft.origin, notebook=request.notebook, asked_by=request.asked_by)
    draft = replace(draft, header=request.limited(draft.header), origin=origin)
    if request.kind == "submit":
        experiment = magics.submit(command, draft).experiment
        return {"experiment": experiment.id, "name": experiment.name}
    kept = None if draft.plan is None else planning.kept_plan(draft.plan)
    return {"would_be_sent": preview.dry_run(draft, command.home), "plan": kept}


def _shell() -> InteractiveShell:
    shell = get_ipython()
    assert isinstance(shell, InteractiveShell)
    return shell
