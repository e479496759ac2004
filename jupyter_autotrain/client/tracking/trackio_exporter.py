"""Trackio's local database, in `TRACKIO_DIR`: a trial is a run of a project that has the experiment's name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trackio.sqlite_storage import SQLiteStorage

from jupyter_autotrain.client.tracking.exporter import Exporter, TrackedTrial
from jupyter_autotrain.core.records import MetricPoint


class TrackioExporter(Exporter):
    """The database that `trackio show` draws; a point that is in it already, by its id, is left as it is."""

    def run_of(self, trial: TrackedTrial) -> str:
        """Return project, name and id of the trial's run, whose parameters are written."""
        run = "/".join((trial.experiment, trial.name, trial.key))
        described = {**trial.params, **trial.tags}
        self._write(run, [{"autotrain.started": 1}], [0], [trial.started_s], ["started"], described)
        return run

    def log(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Add points."""
        metrics: list[dict[str, float]] = []
        steps: list[int] = []
        times: list[float] = []
        names: list[str] = []
        for point in points:
            metrics.append({point.name: math.nan if point.value is None else point.value})
            steps.append(point.step)
            times.append(point.time_s)
            names.append(str(point.id))
        self._write(run, metrics, steps, times, names)

    def end(self, run: str, state: str, ended_s: float, files: Mapping[str, Path]) -> None:  # noqa: ARG002 - the protocol's
        """Note whether the trial succeeded; its files stay where they are."""
        self._write(run, [{"autotrain.succeeded": int(state == "SUCCEEDED")}], [0], [ended_s], [f"ended-{ended_s}"])

    def _write(
        self, run: str, metrics: list[dict[str, float | int]], steps: list[int], times: list[float],
        ids: list[str], config: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        project, name, key = run.split("/")
        SQLiteStorage.bulk_log(
            project, name, metrics, steps, [datetime.fromtimestamp(time_s, UTC).isoformat() for time_s in times],
            dict(config) if config else None, [f"{key}-{one}" for one in ids], run_id=key,
        )  # fmt: skip


def make() -> TrackioExporter:
    """Return the database that Trackio's own variables name."""
    return TrackioExporter()
