"""`%%autotrain` and `%autotrain VERB`: the door from a notebook.

Environment, folder and clock are read here and passed on.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display
from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain import verbs, widgets
from jupyter_autotrain.cell import notebook, submission
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs import Desk


@magics_class
class AutotrainMagics(Magics):
    """The magics of this extension."""

    shell: InteractiveShell

    @line_cell_magic
    def autotrain(self, line: str, cell: str | None = None) -> None:
        """Train what the cell says, in the background: `%%autotrain [NAME] [flags]`, header, `---`, Python.

        As a line magic: `%autotrain VERB` (see `%autotrain help`).
        """
        if cell is None:
            verbs.run(_words(line), self._desk())
        else:
            self._train(line, cell)

    def _train(self, line: str, cell: str) -> None:
        desk = self._desk()
        draft = submission.read(self.shell, line, cell, cwd=desk.cwd, environ=desk.environ)
        if draft.parsed.flags.dry_run:
            desk.write(submission.dry_run(draft, desk.home))
            if wish := submission.split_wish(draft):
                verbs.show_plan(desk, wish)
            return
        if notice := submission.notice(draft):
            desk.write(f"{notice}\n")
        submitted = submission.submit(draft, desk.home, desk.write, input)
        experiment = submitted.experiment
        self._show(experiment)
        if submitted.earlier is not None:
            widgets.show_folded(submitted.earlier)
        if draft.parsed.flags.wait:
            verbs.follow(desk, experiment)

    def _desk(self) -> Desk:
        environ = dict(os.environ)
        return Desk(
            home=Home.from_environment(environ, Path(jupyter_data_dir())),
            environ=environ,
            cwd=Path.cwd(),
            write_raw=_write,
            show=self._show,
            keep=self._keep,
            now=time.time,
            evaluate=self._evaluate,
            show_plan=self._show_plan,
            interactive=True,
            origin=notebook.origin(self.shell, environ),
        )

    def _show(self, experiment: Experiment) -> None:
        widgets.show(experiment)
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
