"""A store whose file or log is lost comes back from the folders of experiments; trials that nobody knows are ended."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from jupyter_autotrain import cli, manager
from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Origin, Placement
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.testing import wait_until
from jupyter_autotrain.verbs import doctor

pytestmark = pytest.mark.fault
EXPERIMENTS = 18
STEPS = 20
OBJECTIVE = Objective("loss")
METRICS = '["v",1]\n' + "".join(f'["m",{step},0.0,{{"loss":{step}}}]\n' for step in range(STEPS))
ENDS = (TrialState.SUCCEEDED, TrialState.FAILED, TrialState.CANCELLED)
TABLES = ("experiments", "trials", "moves", "annotations", "names")


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setattr(doctor, "_check_sidebar", lambda environ: iter(()))  # which JupyterLab loads takes seconds
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    return home


def fill(home, choose):
    """Many experiments, over a hundred trials, in all states; gives a copy of the store's file at some moment."""
    copies = []
    with Store.open(home) as store:
        for number in range(EXPERIMENTS):
            _experiment(home, store, f"e{number:02}", choose)
            copies.append(home.store.read_bytes())
    return copies


def _experiment(home, store, name, choose):
    home.bundle(name).mkdir(parents=True)
    spec = ExperimentSpec(
        f"name{choose.randrange(5)}", Bundle(), header="é" * 300, objective=OBJECTIVE, search={"lr": Uniform(0.0, 1.0)},
        trials=20, origin=Origin("a.ipynb", "session"),
    )  # fmt: skip
    store.add_experiment(name, spec, time.time(), BootTime.now())
    for trial in range(1, choose.randrange(8, 15)):
        store.add_trial(name, trial, {"lr": choose.random()}, time.time())
        for attempt in range(1, choose.randrange(2, 4)):
            if attempt > 1:
                store.change_state(name, trial, TrialState.WAITING, time.time(), reason="tried again")
            _attempt(home, store, (name, trial, attempt), choose)
            if store.trial(name, trial).state not in ENDS[1:]:
                break
    if choose.random() < 0.5:
        store.annotate_experiment(name, tags=["kept"], note="a note")
    if all(trial.state.is_final for trial in store.trials(name)) and choose.random() < 0.8:
        store.close_experiment(name, time.time(), "all trials have ended")


def _attempt(home, store, where, choose):
    name, trial, attempt = where
    directory = home.trial(name, trial, attempt)
    directory.mkdir(parents=True)
    (directory / "metrics").write_text(METRICS)
    placement = Placement((NodePlacement("here"),), "local")
    store.change_state(name, trial, TrialState.PREPARING, time.time(), placement=placement)
    store.change_state(name, trial, TrialState.RUNNING, time.time())
    points = [("loss", step, 0.0, float(step)) for step in range(STEPS)]
    store.ingest([Ingest(name, trial, attempt, "metrics", len(METRICS), points, objective=OBJECTIVE)])
    if choose.random() < 0.9:
        store.change_state(name, trial, choose.choice(ENDS), time.time(), reason="because")


def content(home):
    """All rows without their keys, and all points."""
    found = {}
    with Store.open(home) as store, closing(sqlite3.connect(home.store)) as connection:
        connection.row_factory = sqlite3.Row
        ids = dict(connection.execute("SELECT key, id FROM experiments").fetchall())
        for table in TABLES:
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
            for row in rows:
                row["of"] = ids.get(row.pop("experiment", None))
                row.pop("key", None)
                row.pop("value_count", None)
                row.pop("id", None) if table == "moves" else None
            found[table] = {json.dumps(row, sort_keys=True) for row in rows}
        points = [
            (name, point.number, point.attempt, point.step) for name in ids.values() for point in _all(store, name)
        ]
        assert len(points) == len(set(points))
        found["points"] = set(points)
    return found


def _all(store, name):
    return store.points(name, limit=1 << 30)


def lose_all(home, copies, choose):
    for path in home.root.glob("store.sqlite*"):
        path.unlink()


def lose_the_log(home, copies, choose):
    """Leave the file as it was at some moment."""
    lose_all(home, copies, choose)
    home.store.write_bytes(choose.choice(copies))


def lose_the_content(home, copies, choose):
    lose_all(home, copies, choose)
    home.store.write_bytes(choose.randbytes(50_000))


def be_cut_short(home, copies, choose):
    data = home.store.read_bytes()
    lose_all(home, copies, choose)
    home.store.write_bytes(data[: choose.randrange(len(data))])


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a home, copies of its store at some moments, and what it holds."""
    home = Home(tmp_path_factory.mktemp("filled") / "home")
    copies = fill(home, random.Random(0))
    return home, copies, content(home)


@pytest.mark.parametrize("damage", [lose_all, lose_the_log, lose_the_content, be_cut_short])
def test_experiments_trials_and_points_come_back_when_the_store_is_lost(filled, home, capsys, monkeypatch, damage):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    whole, copies, before = filled
    shutil.copytree(whole.root, home.root)
    damage(home, copies, random.Random(damage.__name__))
    assert cli.main(["doctor", "--repair"]) == 0
    told = capsys.readouterr().out
    after = content(home)
    assert len(before["trials"]) > 150
    for table, rows in before.items():
        assert len(rows & after[table]) >= 0.99 * len(rows), (table, sorted(rows - after[table])[:3], told)
        assert len(after[table] - rows) <= 0.01 * len(rows), (table, sorted(after[table] - rows)[:3])
    assert "Brought back from their folders" in told
    assert "Lost" not in told


def test_copies_are_the_users_alone_and_one_that_is_spoilt_costs_its_trial_alone(filled, home, capsys, monkeypatch):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    shutil.copytree(filled[0].root, home.root)
    copies = [*home.root.glob("experiments/*/rows.json"), *home.root.glob("experiments/*/trials/*/rows.json")]
    assert {path.stat().st_mode & 0o777 for path in copies} == {0o600}
    lose_all(home, [], None)
    spoilt = {1: "x", 2: "[]", 3: "{}", 4: '{"number": 4, "attempt": "x", "state": 7, "moves": []}', 5: "[" * 9999}
    for number, text in spoilt.items():
        home.trial_rows("e00", number).write_text(text)
    home.trial_rows("e00", 6).unlink()
    home.trial_rows("e00", 6).symlink_to("/dev/zero")
    assert cli.main(["doctor", "--repair"]) == 0
    told = capsys.readouterr().out
    with Store.open(home) as store:
        assert len(store.ids()) == EXPERIMENTS
        assert min(trial.number for trial in store.trials("e00")) == 7
    assert all(f"experiments/e00/trials/{number}\n" in told for number in range(1, 7))


WAITS = "import time\nfor step in range(10**6):\n    report(step=step, acc=step)\n    time.sleep(0.02)\n"


def start_trial(home):
    """Start a trial that runs under a real manager; return the manager's pid."""
    bundle = home.bundle("e1")
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text(WAITS)
    with Store.open(home) as store:
        spec = ExperimentSpec("exp", Bundle(python=sys.executable), objective=Objective("acc"))
        store.add_experiment("e1", spec, time.time())
        manager.ensure(home)
        wait_until(lambda: store.points("e1"), "the first point")


def lose_the_store(home):
    """All of it, as when the log is deleted: nothing of it has been moved to the file yet."""
    with manager.stopped(home):
        for path in home.root.glob("store.sqlite*"):
            path.unlink()


def test_a_trial_that_runs_while_the_store_is_lost_goes_on_after_the_repair(home, capsys):
    start_trial(home)
    lose_the_store(home)
    assert cli.main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "lost: 1 experiment of which only the files are left: e1" in told
    assert "doctor --repair" in told
    assert "trial 1 of experiment e1" in told
    assert cli.main(["doctor", "--repair"]) == 0
    assert "Brought back from their folders: 1 experiment and 1 trial." in capsys.readouterr().out
    with Store.open(home) as store:
        wait_until(lambda: len(store.points("e1")) > 50, "further points")
        assert cli.main(["stop", "exp"]) == 0
        steps = [point.step for point in store.points("e1")]
        assert steps == list(range(len(steps)))
        assert [trial.attempt for trial in store.trials("e1")] == [1]
    assert "nothing is left" in capsys.readouterr().out


def test_a_trial_that_no_experiment_knows_is_ended_with_a_receipt(home, capsys):
    start_trial(home)
    assert cli.main(["doctor", "--stop-strays"]) == 0
    assert "belongs to an experiment" in capsys.readouterr().out
    lose_the_store(home)
    shutil.rmtree(home.bundle("e1"))
    home.experiment_rows("e1").unlink()  # of an earlier version, say
    supervisor = json.loads((home.trial("e1", 1, 1) / "status.json").read_text())["supervisor"][0]
    assert cli.main(["doctor", "--stop-strays"]) == 0
    told = capsys.readouterr().out
    assert "trial 1 of experiment e1: stopped in" in told
    assert "nothing is left" in told
    wait_until(lambda: not _is_alive(supervisor), "the supervisor's end")
    cli.main(["doctor"])
    assert "stray" not in capsys.readouterr().out


def _is_alive(pid):
    try:
        return not system.look(pid).is_zombie
    except OSError:
        return False


def test_clean_takes_away_no_experiment_that_a_repair_brings_back(home, capsys):
    home.bundle("e1").mkdir(parents=True)
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("waits", Bundle()), time.time())
    lose_the_store(home)
    assert cli.main(["clean", "--yes"]) == 0
    assert home.experiment_rows("e1").exists()
