"""A cell that runs in a session: what its kernel says is shown as if it ran here."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Mapping
from typing import cast

from IPython.display import clear_output, display

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent.session.messages import Message
from jupyter_autotrain.capture.syntax.cells import parse_code
from jupyter_autotrain.capture.syntax.names import analyse
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import find_session
from jupyter_autotrain.core.spec import TRIAL_NAMES
from jupyter_autotrain.verbs import CommandContext


class Connections:
    """The connections of a notebook to sessions: one lasts until its session has ended."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}

    def connect(self, experiment: Experiment) -> Session:
        """Return the connection to a session; what the session has said since the last cell is passed over."""
        for key in [key for key, one in self._open.items() if one.experiment.state.is_final]:
            self._open.pop(key).close()
        if experiment.id not in self._open:
            self._open[experiment.id] = Session(experiment)
        session = self._open[experiment.id]
        session.skip()
        return session


def is_meant(line: str) -> bool:
    """Tell whether a magic line names a session."""
    return "--session" in line


def run(command: CommandContext, line: str, cell: str, names: Collection[str]) -> None:
    """Run a cell in an open session, and show its output as it comes.

    A header is checked; it counts when the cell is trained. With `--check` nothing runs: `needs` is told.

    Args:
        command: The notebook.
        line: The rest of the line after `%%autotrain`.
        cell: The lines below.
        names: What the notebook binds.

    Raises:
        HeaderError: With all faults of the header.
        CellError: The cell has raised; a notebook shows the traceback of the session.
        AutotrainError: No such session is open, or it ends meanwhile.
    """
    parsed = header.parse_cell(line, cell, backends.header_context(command.cwd, command.environ))
    experiment = find_session(command.home, parsed.flags.session)
    if parsed.flags.check:
        with Session(experiment) as session:
            command.write(needs(session, parsed, names))
        return
    session = command.connect(experiment) if command.connect else Session(experiment)
    session.run(_with_lines_above(parsed), show, input)


def _with_lines_above(parsed: header.ParsedCell) -> str:
    """Return the code with a comment for each line above it, so that a traceback has the line numbers of the cell."""
    if parsed.code.lstrip().startswith("%%"):  # a magic of the whole cell has to be first
        return parsed.code
    return "#\n" * (parsed.code_line - 1) + parsed.code


def needs(session: Session, parsed: header.ParsedCell, names: Collection[str]) -> str:
    """Return what of a session's state a cell needs that a trial would not have, as lines for people."""
    tree, _, _ = parse_code(parsed.code, parsed.code_line)
    read = analyse(tree.body)
    given = {*dir(builtins), *TRIAL_NAMES, *parsed.header.search, *read.hints}
    wanted = sorted((read.eager | read.deferred) - given)
    found = session.describe(wanted)
    lines = []
    for name, what in found.items():
        if name in names:
            lines.append(f"{name}: a trial gets the notebook's; the session has its own ({what}).")
        else:
            lines.append(f"{name}: only the session has it ({what}). Bring it: %autotrain session pull {name}")
    lines += [f"{name}: neither has it." for name in wanted if name not in found and name not in names]
    nothing = f"As a trial this cell needs nothing of session {session.name}."
    return "".join(f"{one}\n" for one in lines or [nothing])


def show(one: Message) -> None:
    """Show what a message holds for people."""
    content = cast("Mapping[str, object]", one["content"])
    match one["msg_type"]:
        case "stream":
            stream = sys.stderr if content.get("name") == "stderr" else sys.stdout
            stream.write(str(content.get("text", "")))
            stream.flush()
        case "display_data" | "execute_result":
            _display(content, update=False)
        case "update_display_data":
            _display(content, update=True)
        case "clear_output":
            clear_output(wait=bool(content.get("wait")))  # type: ignore[no-untyped-call]  # IPython has no types here
        case _:
            pass


def _display(content: Mapping[str, object], *, update: bool) -> None:
    transient = content.get("transient")
    name = transient.get("display_id") if isinstance(transient, Mapping) else None
    display(  # type: ignore[no-untyped-call]  # IPython has no types here
        content.get("data") or {},
        metadata=content.get("metadata") or {},
        raw=True,
        display_id=name,
        update=update and name is not None,
    )
