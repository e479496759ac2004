"""The context that a verb runs with: the home, the variables, and how it prints, shows and evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.client import Experiment, experiments
from jupyter_autotrain.client.agent_request import Permissions
from jupyter_autotrain.client.lookup import find, listed
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Origin
from jupyter_autotrain.store import offset_from_newest

TYPE_CHECKING = False
if TYPE_CHECKING:  # planning is heavy and rarely needed
    from jupyter_autotrain.client.sessions.handle import Session
    from jupyter_autotrain.parallel.plan import Plan


class Presentable(Protocol):
    """A value with two forms, such as a table."""

    def text(self) -> str:
        """Return lines of at most 80 columns."""

    def html(self) -> str:
        """Return HTML in which everything is escaped."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The context of a command: a notebook kernel or a shell.

    Attributes:
        home: The home of the experiments.
        environ: The environment variables of the entry point.
        cwd: The working folder.
        write_raw: Prints text without escaping it and without adding a newline; verbs use `write`.
        show: Shows an experiment: a live view in a notebook, text in a shell.
        keep: Puts a loaded object where the user can reach it.
        now: The clock.
        evaluate: Gives the value of an expression among the user's names.
        show_plan: Shows a plan.
        origin: The notebook whose newest experiment is the default; None: the newest of the home.
        connect: Gives a connection to a session that stays open; None: each verb makes one for itself.
        note: Prints a line that is not part of the result.
        display: Shows a value as HTML; None where there is none, in a shell.
        serve: Serves an agent over standard input and output until it leaves; None in a notebook.
    """

    home: Home
    environ: Mapping[str, str]
    cwd: Path
    write_raw: Callable[[str], None]
    show: Callable[[Experiment], None]
    keep: Callable[[str, object], None]
    now: Callable[[], float]
    evaluate: Callable[[str], object]
    show_plan: Callable[[Plan], None]
    origin: Origin | None = None
    note: Callable[[str], object] = field(default=str)
    connect: Callable[[Experiment], Session] | None = None
    display: Callable[[Presentable], None] | None = None
    serve: Callable[[Permissions], None] | None = None

    def write(self, text: str) -> None:
        """Print text without control sequences: names, reasons and logs come from trials."""
        self.write_raw(printable(text))

    def present(self, value: Presentable) -> None:
        """Show a table or the like: as HTML in a notebook, as text in a shell."""
        if self.display is not None:
            self.display(value)
        else:
            self.write(f"{value.text()}\n")

    def find(self, reference: str) -> Experiment:
        """Find an experiment by name, `name@N`, id prefix, `-1` or `_`.

        Raises:
            UnknownExperimentError: None matches.
        """
        experiment = find(reference, self.home, self.origin)
        places = offset_from_newest(reference)
        if places and self.origin is None:
            rank = "the newest" if places == 1 else f"number {places} from the newest"
            self.note(f"Taking {experiment.name}, {rank} of this home.\n")
        return experiment

    def all(self) -> list[Experiment]:
        """All experiments, newest first."""
        return experiments(home=self.home)

    def listed(self) -> list[tuple[Experiment, ExperimentRecord]]:
        """All experiments with their records, newest first, from one read."""
        return listed(home=self.home)
