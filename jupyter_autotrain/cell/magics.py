"""`%%autotrain` and `%autotrain VERB`: the entry point from a notebook.

Variables, folder and clock are read here and passed on.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display
from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain import verbs, widgets
from jupyter_autotrain.cell import notebook, planning, preview, session_cell, submission
from jupyter_autotrain.cell.preview import notice, progress
from jupyter_autotrain.cell.submission import CellDraft, rehearsal_of
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.submission import Submitted, submit_draft
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs import CommandContext, Presentable


class SubmissionInterrupted(KeyboardInterrupt):
    """An interrupt before anything was sent; a notebook shows it as one line."""

    def _render_traceback_(self) -> list[str]:
        return ["Nothing was sent."]


@magics_class
class AutotrainMagics(Magics):
    """The magics of this extension."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._sessions = session_cell.Connections()

    @line_cell_magic
    def autotrain(self, line: str, cell: str | None = None) -> None:
        """Train the cell in the background: `%%autotrain [NAME] [flags]`, header, `---`, Python.

        As a line magic: `%autotrain VERB` (see `%autotrain help`).
        """
        if cell is None:
            verbs.run(_words(line), self.command())
        else:
            self._train(line, cell)

    def _train(self, line: str, cell: str) -> None:
        command = self.command()
        if session_cell.is_meant(line):
            session_cell.run(command, line, cell, self.shell.user_ns)
            return
        try:
            draft = self.read(command, line, cell)
            if draft.parsed.flags.rehearse:
                draft = rehearsal_of(draft)
            submitted = None if _is_preview(draft) else self.submit(command, draft)
        except KeyboardInterrupt:
            raise SubmissionInterrupted from None
        if submitted is None:
            self._preview(command, draft)
            return
        self._show(submitted.experiment)
        if submitted.earlier is not None:
            widgets.show_collapsed(submitted.earlier)
        if draft.parsed.flags.wait or draft.parsed.flags.rehearse:
            verbs.follow(command, submitted.experiment)
        if draft.parsed.flags.rehearse:
            command.write(submitted.experiment.logs())

    def read(self, command: CommandContext, line: str, cell: str) -> CellDraft:
        """Read the header of a cell and capture what it needs; raises what `submission.read` does."""
        with progress(self.shell, ()) as shown:
            return submission.read(
                self.shell,
                line,
                cell,
                cwd=command.cwd,
                environ=command.environ,
                planner=partial(verbs.make_plan, command),
                progress=shown.captured,
            )

    def submit(self, command: CommandContext, draft: CellDraft) -> Submitted:
        """Tell what travels, and send a cell; raises what `submit_draft` does."""
        shown: list[Callable[[], None]] = []

        def show(part: Callable[[], None]) -> None:
            shown.append(part)
            part()

        def write(text: str) -> None:
            show(partial(command.write, text))

        if found := notice(draft.captured):
            show(partial(command.present, found))
        for note in preview.notes(draft):
            write(f"{note}\n")
        kept = None
        if draft.plan is not None:
            write(f"{planning.headline(draft.plan, used=draft.runs_plan)}\n")
            kept = planning.kept_plan(draft.plan)
        return submit_draft(draft, command.home, Dialogue(write, input), progress(self.shell, shown), kept)

    def _preview(self, command: CommandContext, draft: CellDraft) -> None:
        if not draft.parsed.flags.dry_run:
            command.write(preview.check(draft, command.home))
            return
        command.write(preview.dry_run(draft, command.home))
        if draft.plan is not None:
            command.show_plan(draft.plan)

    def command(self) -> CommandContext:
        """Return the context that verbs run with in this notebook."""
        environ = dict(os.environ)
        return CommandContext(
            home=Home.from_environment(environ, Path(jupyter_data_dir())),
            environ=environ,
            cwd=Path.cwd(),
            write_raw=_write,
            show=self._show,
            keep=self._keep,
            now=time.time,
            evaluate=self._evaluate,
            show_plan=self._show_plan,
            origin=notebook.origin(self.shell, environ),
            connect=self._sessions.connect,
            display=self._display if hasattr(self.shell, "kernel") else None,
        )

    def _display(self, value: Presentable) -> None:
        forms = {"text/html": value.html(), "text/plain": value.text()}
        display(forms, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types here

    def _show(self, experiment: Experiment) -> None:
        widgets.show_experiment(experiment)
        # The experiment is the cell's value (`_`, `Out[n]`), but it has been shown already.
        self.shell.displayhook.update_user_ns(experiment)  # type: ignore[no-untyped-call]  # IPython has no types here

    def _show_plan(self, plan: object) -> None:
        display(plan)  # type: ignore[no-untyped-call]  # IPython has no types here
        self.shell.displayhook.update_user_ns(plan)  # type: ignore[no-untyped-call]  # IPython has no types here

    def _evaluate(self, expression: str) -> object:
        try:
            value: object = self.shell.ev(expression)  # type: ignore[no-untyped-call]  # IPython has no types here
        except AutotrainError:
            raise
        except Exception as fault:  # noqa: BLE001 - whatever the user's expression raises
            raise AutotrainError(
                f"The expression {expression!r} raises {type(fault).__name__}: {fault}",
                "An expression of names that the notebook has.",
                "Run the cells that define them, or correct the expression.",
            ) from None
        return value

    def _keep(self, name: str, value: object) -> None:
        self.shell.user_ns[name] = value


def _is_preview(draft: CellDraft) -> bool:
    return draft.parsed.flags.check or draft.parsed.flags.dry_run


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise AutotrainError(
            f"%autotrain {line}: {error}.", "Expected a verb and its arguments.", "See: %autotrain help"
        ) from None
