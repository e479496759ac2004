"""The tools that only read: experiments, metrics, logs, reasons, plans, cells.

Each answers at once with JSON. A text that code of a trial or of a notebook has written stands under `DATA` alone, so
that a reader can tell it from what the server itself says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.capture.bundle import PLAN
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.experiment_files import trial_or_newest
from jupyter_autotrain.client.lookup import find, listed
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.mcp.notebook_file import NotebookFile
from jupyter_autotrain.views.json_objects import experiment_json, strict, trial_json
from jupyter_autotrain.views.log_window import log_json
from jupyter_autotrain.views.series import curves_json

DATA: Final = "data_from_code"
_MOST_TRIALS: Final = 100
_MOST_METRICS: Final = 50
_MOST_CHARACTERS: Final = 2000


def from_code(text: str) -> JsonObject:
    """Mark a text as data, which nobody is to obey."""
    return {DATA: printable(text)}


def answer(value: JsonValue) -> str:
    """Return the text of a tool's answer."""
    return json.dumps(strict(value), allow_nan=False, ensure_ascii=False)


def facts_of(experiment: Experiment) -> dict[str, JsonValue]:
    """Return one experiment without its trials, its texts marked."""
    found = dict(experiment_json(experiment, experiment.record))
    best = experiment.best
    found["reason"] = from_code(experiment.record.remark)
    found["best"] = None if best is None else _trial(best)
    return found


def _trial(trial: TrialRecord) -> JsonObject:
    found = dict(trial_json(trial))
    found["reason"] = from_code(cut(trial.reason, _MOST_CHARACTERS))
    params: dict[str, JsonValue] = {}
    for name, value in trial.params.items():
        params[name] = from_code(value) if isinstance(value, str) else value
    found["params"] = params
    return found


@dataclass(frozen=True, slots=True)
class ReadingTools:
    """The tools that read one home; the docstring of each is what an agent is told of it.

    Attributes:
        home: The home.
        folder: The folder below which notebooks lie.
        environ: The server's variables.
    """

    home: Home
    folder: Path
    environ: Mapping[str, str]

    @contextmanager
    def _experiment(self, reference: str) -> Iterator[Experiment]:
        experiment = find(reference, self.home, None)
        try:
            yield experiment
        finally:
            experiment.store.close()

    def list_experiments(self, text: str = "", state: str = "", limit: int = 20) -> str:
        """List experiments, newest first. text: part of a name. state: WAITING, RUNNING, SUCCEEDED, FAILED ..."""
        rows: list[JsonValue] = []
        total = 0
        for experiment, record in listed(home=self.home):
            if text in record.label and state.upper() in {"", record.state.value}:
                total += 1
                if len(rows) < min(limit, _MOST_TRIALS):
                    rows.append(facts_of(experiment))
        return answer({"experiments": rows, "total": total})

    def show_experiment(self, experiment: str, first_trial: int = 1) -> str:
        """Show an experiment with up to 100 of its trials. experiment: its name, name@N or id; -1 is the newest."""
        with self._experiment(experiment) as found:
            trials = [trial for trial in found.trials if trial.number >= first_trial]
            metrics = found.store.metric_names(found.id)[:_MOST_METRICS]
            facts = facts_of(found)
            facts["metrics"] = [*map(from_code, metrics)]
            facts["warnings"] = [*map(from_code, found.warnings())]
            facts["all_trials"] = list(map(_trial, trials[:_MOST_TRIALS]))
            facts["trials_left_out"] = max(len(trials) - _MOST_TRIALS, 0)
        return answer(facts)

    def read_metrics(self, experiment: str, metric: str, trials: list[int] | None = None, max_points: int = 200) -> str:
        """Read the curves of a metric: steps, values and times of each trial, thinned out to max_points in all."""
        with self._experiment(experiment) as found:
            known = found.store.metric_names(found.id)
            if metric not in known:
                raise AutotrainError(
                    f"{found.name} has no metric {metric!r}.", "A metric that was reported.", "See: show_experiment"
                )
            points = min(max(max_points, 4), 5000)
            curves = curves_json(found.store, found.id, metric, trials, points)
        return answer(curves)

    def read_logs(
        self,
        experiment: str,
        trial: int | None = None,
        stream: Literal["stdout", "stderr"] = "stdout",
        rank: int = 0,
        begin_bytes: int = -1,
        most_bytes: int = 8000,
    ) -> str:
        """Read what a trial has printed, from begin_bytes on (-1: its end). Ask again from end_bytes for what came."""
        with self._experiment(experiment) as found:
            found.check_rank(rank)
            record = trial_or_newest(found.store, found.record, trial)
            begin = None if begin_bytes < 0 else begin_bytes
            name = wire.stream_of_rank(stream, rank)
            window = dict(log_json(found.directory(record), name, begin, min(max(most_bytes, 1), 64_000)))
            window["text"] = from_code(str(window["text"]))
            return answer({"trial": record.number, "state": record.state.value, **window})

    def why(self, experiment: str) -> str:
        """Explain why trials of an experiment wait or have failed, a sentence each."""
        with self._experiment(experiment) as found:
            sentences = list(map(from_code, found.why()[:_MOST_TRIALS]))
            return answer({"experiment": found.id, "state": found.state.value, "why": [*sentences]})

    def compare(self, experiments: list[str]) -> str:
        """Put experiments side by side: state, objective, best trial with its parameters."""
        rows: list[JsonValue] = []
        for reference in experiments[:_MOST_METRICS]:
            with self._experiment(reference) as found:
                rows.append(facts_of(found))
        return answer({"experiments": rows})

    def show_plan(self, experiment: str) -> str:
        """Show the plan that splits an experiment's model over its devices, as it was made at the submission."""
        with self._experiment(experiment) as found:
            try:
                plan = files.read_json(self.home.bundle(found.id), PLAN)
            except (OSError, ValueError):
                raise AutotrainError(
                    f"{found.name} has no plan.", "An experiment whose header has `parallel:`.", "See: plan_cell"
                ) from None
            return answer({"experiment": found.id, "plan": from_code(json.dumps(plan))})

    def list_cells(self, notebook: str) -> str:
        """List the cells of a notebook that can be submitted. notebook: a path below the server's folder."""
        found = NotebookFile.read(notebook, self.folder)
        cells: list[JsonValue] = []
        for cell in found.cells:
            if cell.is_training:
                text = cell.source[:_MOST_CHARACTERS]
                cells.append({"number": cell.number, "id": cell.id, "source": from_code(text)})
        return answer({"notebook": str(found.path.relative_to(self.folder.resolve())), "cells": cells})
