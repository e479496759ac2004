"""MLflow as a tracking server: a trial is a run of an experiment there; `MLFLOW_TRACKING_URI` says where that is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from mlflow.entities import LoggedModelOutput, Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from jupyter_autotrain.client.tracking.exporter import Exporter, TrackedRun, TrackedTrial
from jupyter_autotrain.core.records import MetricPoint
from jupyter_autotrain.core.text_format import cut, parameter

_KEY: Final = "autotrain.trial"
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_\-. :/]")
_NOT_IN_A_MODEL_NAME: Final = re.compile(r"[/:.%\"']")
_MODEL: Final = "MLmodel"  # the file that makes a folder a model
_MOST_CHARACTERS: Final = 5000
_STATES: Final = {"SUCCEEDED": "FINISHED", "EARLY_STOPPED": "FINISHED", "CANCELLED": "KILLED"}


class MlflowExporter(Exporter):
    """A tracking server of MLflow."""

    def __init__(self, client: MlflowClient) -> None:
        self._client = client

    def run_of(self, trial: TrackedTrial) -> str:
        """Return the id of the trial's run, found by its key, else created."""
        known = self._client.get_experiment_by_name(trial.experiment)
        experiment_id = self._client.create_experiment(trial.experiment) if known is None else known.experiment_id
        found = self._client.search_runs([experiment_id], f"tags.`{_KEY}` = '{trial.key}'", max_results=1)
        if found:
            return str(found[0].info.run_id)
        tags = {**trial.tags, _KEY: trial.key}
        run = self._client.create_run(experiment_id, _ms(trial.started_s), tags, trial.name)
        params = [Param(_name(name), cut(parameter(value), _MOST_CHARACTERS)) for name, value in trial.params.items()]
        self._client.log_batch(run.info.run_id, params=params)
        return str(run.info.run_id)

    def log(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Add points in one batch; the server keeps equal ones once."""
        metrics = []
        for point in points:
            value = math.nan if point.value is None else point.value
            metrics.append(Metric(_name(point.name), value, _ms(point.time_s), point.step))
        self._client.log_batch(run, metrics=metrics)

    def end(self, run: str, state: str, ended_s: float, files: Mapping[str, Path]) -> None:
        """Add files as artifacts, and end the run."""
        models = {Path(name).parent: path.parent for name, path in files.items() if Path(name).name == _MODEL}
        for name, path in files.items():
            folder = Path(name).parent
            if not any(map(folder.is_relative_to, models)):
                self._client.log_artifact(run, str(path), None if str(folder) == "." else str(folder))
        for model, source in models.items():
            self._log_model(run, str(model), source)
        self._client.log_batch(run, tags=[RunTag("autotrain.state", state)])
        self._client.set_terminated(run, _STATES.get(state, "FAILED"), _ms(ended_s))

    def _log_model(self, run: str, name: str, folder: Path) -> None:
        """Add a folder that the cell has saved with `save_model` of MLflow, with its signature, as a model."""
        experiment_id = self._client.get_run(run).info.experiment_id
        known = self._client.search_logged_models([experiment_id], f"source_run_id = '{run}'")
        name = _NOT_IN_A_MODEL_NAME.sub("_", name if name != "." else "model")
        if any(one.name == name and str(one.status) == "READY" for one in known):
            return
        model = self._client.create_logged_model(experiment_id, name, source_run_id=run)
        self._client.log_model_artifacts(model.model_id, str(folder))
        self._client.finalize_logged_model(model.model_id, "READY")
        self._client.log_outputs(run, [LoggedModelOutput(model.model_id, step=0)])

    def read(self, run: str) -> TrackedRun:
        """Read a run with the last value of each of its metrics."""
        found = self._client.get_run(run)
        return TrackedRun(
            str(found.info.run_name), str(found.info.status), dict(found.data.params), dict(found.data.metrics)
        )


def make() -> MlflowExporter:
    """Return the server that MLflow's own variables name."""
    return MlflowExporter(MlflowClient())


def _name(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text)[:250]


def _ms(time_s: float) -> int:
    return round(time_s * 1000)
