"""The files of W&B, TensorBoard and Trackio get all points once, also when a delivery is cut off and comes again."""

from __future__ import annotations

import json
import struct

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.tracking.exporter import TrackedTrial, exporter
from jupyter_autotrain.client.tracking.mirror import Mirror
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries themselves
OBJECTIVE = Objective("acc")


class CutOffError(Exception):
    """The process is killed: the points are written, the cursor is not."""


class CutOff:
    """Delivers to an exporter, and ends after the first batch."""

    def __init__(self, exporter):
        self._exporter = exporter
        self.run_of = exporter.run_of

    def log(self, run, points):
        self._exporter.log(run, points)
        raise CutOffError


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle(), objective=OBJECTIVE), 1.0)
        store.add_trial("e1", 1, {"lr": 0.1, "layers": [8, 4]}, 2.0)
        for state in (TrialState.PREPARING, TrialState.RUNNING):
            store.change_state("e1", 1, state, 3.0)
        yield Experiment(home, store, "e1", {})


def report(experiment, first, last):
    points = [("acc", step, float(step), step / 4) for step in range(first, last)]
    experiment.store.ingest([Ingest("e1", 1, 1, "metrics", last, points, objective=OBJECTIVE)])


def deliver(experiment, name, wrapped=lambda one: one):
    made = exporter(name)
    mirror = Mirror(experiment, name, wrapped(made))
    with mirror.alone():
        return mirror.deliver()


def deliver_cut_off_then_whole(experiment, name, end_process=lambda: None):
    report(experiment, 0, 3)
    with pytest.raises(CutOffError):
        deliver(experiment, name, CutOff)
    end_process()
    report(experiment, 3, 6)
    experiment.store.change_state("e1", 1, TrialState.SUCCEEDED, 9.0)
    experiment.store.close_experiment("e1", 10.0)
    assert deliver(experiment, name)


EXPECTED = [("acc", step, step / 4) for step in range(6)]


def test_tensorboard_reads_each_point_once(experiment, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "logs"))
    deliver_cut_off_then_whole(experiment, "tensorboard")
    read = EventAccumulator(str(tmp_path / "logs" / "digits" / "digits-1-e1-1"))
    read.Reload()
    assert [("acc", event.step, event.value) for event in read.Scalars("acc")] == EXPECTED
    assert "_hparams_/session_start_info" in read.summary_metadata


def test_a_half_written_event_is_cut_away(experiment, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "logs"))
    report(experiment, 0, 3)
    deliver(experiment, "tensorboard")
    (events,) = tmp_path.rglob("events.out.*")
    with events.open("ab") as file:
        file.write(b"half an event")
    report(experiment, 3, 6)
    deliver(experiment, "tensorboard")
    read = EventAccumulator(str(events.parent))
    read.Reload()
    assert [("acc", event.step, event.value) for event in read.Scalars("acc")] == EXPECTED


def test_trackio_has_each_point_once(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio", reason="trackio is not installed")
    from trackio import utils
    from trackio.sqlite_storage import SQLiteStorage

    monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path / "trackio")
    monkeypatch.setattr(utils, "TRACKIO_DIR", tmp_path / "trackio")
    deliver_cut_off_then_whole(experiment, "trackio")
    rows = SQLiteStorage.get_logs("digits", "digits-1")
    assert [("acc", row["step"], row["acc"]) for row in rows if "acc" in row] == EXPECTED
    assert SQLiteStorage.get_run_config("digits", "digits-1")["lr"] == 0.1


def test_wandb_files_name_each_point_once_by_its_own_step(experiment, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    import wandb

    deliver_cut_off_then_whole(experiment, "wandb", wandb.teardown)
    rows = {}
    for file in sorted(tmp_path.rglob("run-*.wandb")):
        rows.update(_wandb_rows(file))
    assert [("acc", int(row["step"]), row["acc"]) for _, row in sorted(rows.items())] == EXPECTED


def _wandb_rows(file):
    """Return what W&B keeps when it syncs a file: the rows by their `_step`."""
    from wandb.proto import wandb_internal_pb2

    found = {}
    for content in _level_db_records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
            found[record.history.step.num] = row
    return found


def _level_db_records(content):
    """Yield the records of a log of LevelDB: blocks of 32 KiB, a head of 7 bytes before each piece of a record."""
    place = 7  # W&B's own head
    parts = []
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        parts.append(content[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in {1, 4}:  # whole, or the last piece
            yield b"".join(parts)
            parts = []


@pytest.mark.parametrize("name", ["wandb", "tensorboard", "trackio"])
def test_only_mlflow_is_read_back(name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    with pytest.raises(AutotrainError, match="cannot read"):
        exporter(name).read("x")


@pytest.mark.filterwarnings("ignore")  # MLflow's own, of its file store
def test_a_folder_that_mlflow_has_saved_becomes_one_model_with_its_signature(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    from mlflow.models import Model, ModelSignature, get_model_info
    from mlflow.tracking import MlflowClient
    from mlflow.types import ColSpec, Schema

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/runs")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    signature = ModelSignature(Schema([ColSpec("double", "x")]))
    folder = tmp_path / "model"
    folder.mkdir()
    Model(signature=signature).save(str(folder / "MLmodel"))
    server = exporter("mlflow")
    run = server.run_of(TrackedTrial("e1-1", "digits", "digits-1", {}, {}, 1.0))
    for _ in range(2):  # as when the first one was cut off before it was noted
        server.end(run, "SUCCEEDED", 2.0, {"model/MLmodel": folder / "MLmodel"})
    (model,) = MlflowClient().search_logged_models([MlflowClient().get_run(run).info.experiment_id])
    assert (model.name, model.source_run_id) == ("model", run)
    assert get_model_info(f"models:/{model.model_id}").signature == signature
