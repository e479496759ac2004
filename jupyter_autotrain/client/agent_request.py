"""A program's wish to submit or to plan a cell of a notebook, and what it may do at most.

The wish and its answer are files of one folder: who asks, the kernel that runs the cell, and who reads the answer later
are different processes, and each may end before the others.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.core.text_format import count, duration
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import Header

_REQUEST: Final = "request.json"
_ANSWER: Final = "answer.json"
_MOST_BYTES: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Grant:
    """The limits of what a program may submit.

    Attributes:
        trials: How many trials it may start in all.
        time_s: The longest time of an experiment, and of the cells that run before its cell.
        places: The backends that it may use.
    """

    trials: int
    time_s: float
    places: tuple[str, ...]

    def limited(self, header: Header) -> Header:
        """Return a header with a time budget within the grant.

        Raises:
            AutotrainError: It asks for more trials than are left, or for a place that is not granted.
        """
        if header.trial_count > self.trials:
            raise AutotrainError(
                f"The cell asks for {count(header.trial_count, 'trial')}.",
                f"The grant has {self.trials} left.",
                "Ask for fewer (trials=N), or for a new grant: jupyter autotrain mcp --trials N",
            )
        names = (choice.profile.name for choice in header.choices)
        if others := sorted(set(names).difference(self.places)):
            raise AutotrainError(
                f"The cell may run at {', '.join(others)}.",
                f"The grant is for {', '.join(self.places)}.",
                "Ask for another place (place=NAME), or for a new grant: jupyter autotrain mcp --places NAME",
            )
        time_s = min(header.budget.time or math.inf, self.time_s)
        return header.model_copy(update={"budget": header.budget.model_copy(update={"time": time_s})})

    def __str__(self) -> str:
        times = f"{duration(self.time_s)} for each experiment"
        return f"{count(self.trials, 'trial')} in all, {times}, at {', '.join(self.places)}"


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rights of a program besides reading; `grant` is None where it may submit nothing."""

    grant: Grant | None = None
    may_stop: bool = False


@dataclass(frozen=True, slots=True)
class CellRequest:
    """A wish for one cell.

    Attributes:
        kind: submit or plan.
        notebook: The notebook's path, absolute.
        kernel: The name of its kernel.
        earlier: The code cells above, which run first.
        line: What follows `%%autotrain` on the cell's first line.
        body: The lines below it.
        trials: How many trials instead of what the header says; None: as it says.
        name: The experiment's name instead of the cell's; "": as it says.
        asked_by: The program that asks.
        grant: What it may do.
        may_stop: Whether an earlier run may be stopped for this one, where the header says so.
    """

    kind: Literal["submit", "plan"]
    notebook: str
    kernel: str
    earlier: tuple[str, ...]
    line: str
    body: str
    trials: int | None
    name: str
    asked_by: str
    grant: Grant
    may_stop: bool

    def limited(self, header: Header) -> Header:
        """Return the cell's header as it is submitted; raises what `Grant.limited` does."""
        changes: dict[str, object] = {} if self.trials is None else {"trials": self.trials}
        if self.name:
            changes["name"] = self.name
        if not self.may_stop:
            changes["on_rerun"] = "keep"
        return self.grant.limited(header.model_copy(update=changes))

    def write(self, folder: Path) -> None:
        """Keep it in a folder."""
        _write(folder, _REQUEST, to_json(self))

    @classmethod
    def read(cls, folder: Path) -> CellRequest:
        """Read what `write` has kept there."""
        return from_json(cls, json.loads(files.read(folder, _REQUEST, _MOST_BYTES)))


def write_answer(folder: Path, answer: JsonObject) -> None:
    """Keep the answer beside the request; the first one stays."""
    if read_answer(folder) is None:
        _write(folder, _ANSWER, answer)


def read_answer(folder: Path) -> JsonObject | None:
    """Return the answer; None while there is none."""
    try:
        found = files.read_json(folder, _ANSWER)
    except OSError as error:
        if files.is_absent(error):
            return None
        raise
    return found if isinstance(found, dict) else None


def refusal(error: BaseException) -> JsonObject:
    """Return the answer that tells what was in the way."""
    text = str(error) if isinstance(error, AutotrainError) else f"{type(error).__name__}: {error}"
    return {"error": text}


def _write(folder: Path, name: str, value: object) -> None:
    wire.write_atomically(str(folder / name), json.dumps(value).encode())
