"""W&B's offline files: a trial is a run in `WANDB_DIR`, or in `wandb` of the notebook's folder, for `wandb sync`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import wandb

from jupyter_autotrain.client.tracking.exporter import Exporter, TrackedTrial
from jupyter_autotrain.core.records import MetricPoint

_NOT_IN_A_NAME: Final = re.compile(r"[/\\#?%:]")
_STEP: Final = "step"


class WandbExporter(Exporter):
    """Runs of W&B that are written and never sent.

    A run that another process began goes on in a second folder with the same id, which `wandb sync --append` joins.
    W&B's own step is the point's id, which grows and is the same when a batch comes again.
    """

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}

    def run_of(self, trial: TrackedTrial) -> str:
        """Return the project and id of the trial's run, which is begun."""
        run = f"{_NOT_IN_A_NAME.sub('_', trial.experiment)}/{trial.key}"
        self._begin(run, name=trial.name, group=trial.experiment, config=dict(trial.params), notes=_notes(trial.tags))
        return run

    def _begin(self, run: str, **described: Any) -> Any:  # noqa: ANN401 - a run of W&B, whose library may be absent
        project, _, run_id = run.partition("/")
        quiet = wandb.Settings(console="off", x_disable_stats=True, disable_code=True, disable_git=True, silent=True)
        begun = wandb.init(project=project, id=run_id, mode="offline", reinit="create_new", settings=quiet, **described)
        begun.define_metric("*", step_metric=_STEP)
        self._open[run] = begun
        return begun

    def log(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Add points; those of one step are one row."""
        opened = self._open.get(run) or self._begin(run)
        for step, of_step in groupby(points, attrgetter("step")):
            row = [*of_step]
            values = {point.name: math.nan if point.value is None else point.value for point in row}
            opened.log({**values, _STEP: step}, step=row[0].id, commit=True)

    def end(self, run: str, state: str, ended_s: float, files: Mapping[str, Path]) -> None:  # noqa: ARG002 - the protocol's
        """Add files and the state, and close the run's file."""
        opened = self._open.pop(run, None) or self._begin(run)
        opened.summary["autotrain.state"] = state
        for path in files.values():
            opened.save(str(path), base_path=str(path.parent), policy="now")
        opened.finish(exit_code=0 if state in {"SUCCEEDED", "EARLY_STOPPED"} else 1)


def make() -> WandbExporter:
    """Return W&B's offline files, where its own variables say."""
    return WandbExporter()


def _notes(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in tags.items())
