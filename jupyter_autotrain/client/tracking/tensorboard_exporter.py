"""TensorBoard's event files: a trial is a folder below `TENSORBOARD_LOGDIR`, or `runs` in the notebook's folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from jupyter_autotrain.agent import durable, wire
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.client.tracking.exporter import Exporter, TrackedTrial
from jupyter_autotrain.core.records import MetricPoint
from jupyter_autotrain.core.text_format import parameter

_EVENTS: Final = "events.out.tfevents.0.autotrain"
_TAKEN: Final = "autotrain.json"  # the length of the event file, and the id of the last point in it
_VERSION: Final = "brain.Event:2"


class TensorboardExporter(Exporter):
    """A folder of event files.

    A batch that was cut off leaves the file longer than was noted: the next one goes on from there.

    Args:
        folder: The folder that TensorBoard's `--logdir` names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()

    def run_of(self, trial: TrackedTrial) -> str:
        """Return the folder of the trial, with its parameters in it."""
        run = self._folder / trial.experiment / f"{trial.name}-{trial.key}"
        run.mkdir(parents=True, exist_ok=True)
        if not (run / _TAKEN).exists():
            params = {name: _hyperparameter(value) for name, value in trial.params.items()}
            begun = Event(wall_time=trial.started_s, file_version=_VERSION)
            described = Event(wall_time=trial.started_s, summary=hparams_pb(params, trial_id=trial.key))
            _append(run, [begun, described] if params else [begun], 0)
        return str(run)

    def log(self, run: str, points: Sequence[MetricPoint]) -> None:
        """Append points that the file has not got."""
        _, last_id = _taken(Path(run))
        events = []
        for point in points:
            if point.id > last_id:
                value = math.nan if point.value is None else point.value
                summary = Summary(value=[Summary.Value(tag=point.name, simple_value=value)])
                events.append(Event(wall_time=point.time_s, step=point.step, summary=summary))
        _append(Path(run), events, max(last_id, points[-1].id))

    def end(self, run: str, state: str, ended_s: float, files: Mapping[str, Path]) -> None:
        """Do nothing: event files have no end, and what the trial has written stays where it is."""


def make() -> TensorboardExporter:
    """Return the folder that TENSORBOARD_LOGDIR names."""
    return TensorboardExporter(Path(os.environ.get("TENSORBOARD_LOGDIR") or "runs"))


def _hyperparameter(value: JsonValue) -> bool | float | str:
    return value if isinstance(value, bool | int | float | str) else parameter(value)


def _taken(run: Path) -> tuple[int, int]:
    try:
        found = json.loads((run / _TAKEN).read_bytes())
    except FileNotFoundError:
        return 0, 0
    return int(found["bytes"]), int(found["point"])


def _append(run: Path, events: Sequence[Event], last_id: int) -> None:
    length, _ = _taken(run)
    with (run / _EVENTS).open("ab") as file:
        file.truncate(length)
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
        file.flush()
        durable.sync(file.fileno())
        length = file.seek(0, os.SEEK_END)
    wire.write_atomically(str(run / _TAKEN), json.dumps({"bytes": length, "point": last_id}).encode())
