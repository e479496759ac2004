"""The interface of a tracking server, or of the files of one, to a mirror; and those that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.records import MetricPoint
from jupyter_autotrain.core.spec import TRACKERS
from jupyter_autotrain.errors import AutotrainError, MissingExtraError


@dataclass(frozen=True, slots=True)
class TrackedTrial:
    """A trial as a tracking server gets it.

    Attributes:
        key: What tells it from all others, also of other homes: the experiment's id and the trial's number.
        experiment: The experiment's name.
        name: Its own name.
        params: Its parameters.
        tags: What else is known of it.
        started_s: When it began, in seconds since the epoch.
    """

    key: str
    experiment: str
    name: str
    params: Mapping[str, JsonValue]
    tags: Mapping[str, str]
    started_s: float


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run as it is read back from a tracking server."""

    name: str
    state: str
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


class Exporter(Protocol):
    """A tracking server. Each method may raise whatever its library raises; then the same is asked again later."""

    def run_of(self, trial: TrackedTrial) -> str:
        """Return the id of the trial's run; a new one only where there is none with its key."""
        ...

    def log(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Add points, at most 1,000; the same points twice are the same as once."""
        ...

    def end(self, run: str, state: str, ended_s: float, files: Mapping[str, Path]) -> None:
        """Add files by their names, and note how the run has ended; a second call replaces the first."""
        ...

    def read(self, run: str) -> TrackedRun:
        """Read a run back.

        Raises:
            AutotrainError: This one is only written to.
        """
        found = f"{type(self).__name__} cannot read {run!r} back."
        raise AutotrainError(found, "A run of MLflow, as mlflow:RUN_ID.", "Look at it with its own viewer.")


def exporter(name: str) -> Exporter:
    """Return the tracking server of a name, at the address that its own variables give.

    Raises:
        AutotrainError: There is no such kind of server.
        MissingExtraError: Its library is not installed.
    """
    if name not in TRACKERS:
        known = ", ".join(TRACKERS)
        raise AutotrainError(
            f"track: there is no {name!r}.", f"Expected one of: {known}.", "See: %autotrain help track"
        )
    try:
        module = import_module(f"{__package__}.{name}_exporter")
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(name, name, f"track: {name}") from None
    made: Exporter = module.make()
    return made
