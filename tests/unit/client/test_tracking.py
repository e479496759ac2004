"""The mirror of an experiment at a tracking server: nothing is lost where that is away, nothing comes twice."""

from __future__ import annotations

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.tracking import exporter as exporters
from jupyter_autotrain.client.tracking.mirror import Mirror, follow
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store


class Server:
    """A tracking server that may be away."""

    def __init__(self):
        self.runs = {}
        self.points = []
        self.ended = {}
        self.calls_left = 10**6

    def _call(self):
        self.calls_left -= 1
        if self.calls_left < 0:
            raise ConnectionError("the server is away")

    def run_of(self, trial):
        self._call()
        return self.runs.setdefault(trial.key, f"run-{trial.key}")

    def log(self, run, points):
        self._call()
        self.points += [(run, point.name, point.step, point.value) for point in points]

    def end(self, run, state, ended_s, files):
        self._call()
        self.ended[run] = state


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    home = Home(tmp_path / "home")
    store = Store.open(home)
    store.add_experiment("e1", ExperimentSpec("digits", Bundle(), objective=Objective("acc"), trials=2), 1.0)
    yield Experiment(home, store, "e1", {})
    store.close()


def report(experiment, number, first, last):
    points = [("acc", step, float(step), step / 10) for step in range(first, last)]
    ingest = Ingest("e1", number, 1, "metrics", last, points, objective=Objective("acc"))
    experiment.store.ingest([ingest])


def begin(experiment, number):
    experiment.store.add_trial("e1", number, {"lr": 0.1}, 2.0)
    for state in (TrialState.PREPARING, TrialState.RUNNING):
        experiment.store.change_state("e1", number, state, 3.0)


def finish(experiment, *numbers):
    for number in numbers:
        experiment.store.change_state("e1", number, TrialState.SUCCEEDED, 9.0)
    experiment.store.close_experiment("e1", 10.0)


def test_all_points_come_once_and_in_their_order_however_often_the_server_is_away(experiment):
    server = Server()
    begin(experiment, 1)
    begin(experiment, 2)
    report(experiment, 1, 0, 700)
    report(experiment, 2, 0, 700)
    report(experiment, 1, 700, 1500)
    for calls in (0, 1, 2):  # fails before the run, before its points, between two runs
        server.calls_left = calls
        mirror = Mirror(experiment, "mlflow", server)  # as after a kill: the cursor alone is kept
        with mirror.alone(), pytest.raises(ConnectionError):
            mirror.deliver()
    server.calls_left = 10**6
    finish(experiment, 1, 2)
    mirror = Mirror(experiment, "mlflow", server)
    with mirror.alone():
        assert mirror.deliver()
        assert mirror.waiting == 0
    first = [step for run, _, step, _ in server.points if run == "run-e1-1"]
    second = [step for run, _, step, _ in server.points if run == "run-e1-2"]
    assert sorted(set(first)) == list(range(1500))
    assert second == list(range(700))
    assert server.ended == {"run-e1-1": "SUCCEEDED", "run-e1-2": "SUCCEEDED"}


def test_a_second_delivery_sends_nothing_again(experiment):
    server = Server()
    begin(experiment, 1)
    report(experiment, 1, 0, 5)
    for _ in range(2):
        mirror = Mirror(experiment, "mlflow", server)
        with mirror.alone():
            assert not mirror.deliver()
        assert len(server.points) == 5
    finish(experiment, 1)
    with mirror.alone():
        assert follow(mirror, pause_s=0.01)
    assert (len(server.points), len(server.ended)) == (5, 1)


def test_following_goes_on_when_the_server_is_back(experiment):
    server = Server()
    begin(experiment, 1)
    report(experiment, 1, 0, 5)
    finish(experiment, 1)
    server.calls_left = 1
    away = server._call

    def counted():
        if server.calls_left == 0:
            server.calls_left = 100  # it is back at the next try
            raise ConnectionError("the server is away")
        away()

    server._call = counted
    mirror = Mirror(experiment, "mlflow", server)
    with mirror.alone():
        assert follow(mirror, pause_s=0.01)
    assert len(server.points) == 5


def test_following_ends_where_the_server_never_comes(experiment):
    server = Server()
    server.calls_left = 0
    begin(experiment, 1)
    report(experiment, 1, 0, 5)
    mirror = Mirror(experiment, "mlflow", server)
    with mirror.alone():
        assert not follow(mirror, pause_s=0.01, gives_up_s=0.05)
        assert mirror.waiting == 5


def test_one_process_delivers_to_a_server(experiment):
    first, second = (Mirror(experiment, "mlflow", Server()) for _ in range(2))
    with first.alone(), pytest.raises(AutotrainError, match="another process"), second.alone():
        pass


def test_a_server_that_is_not_known_is_told():
    with pytest.raises(AutotrainError, match="Expected one of: mlflow"):
        exporters.exporter("tensorbord")
