"""Two versions of the package use one home: the newer manager takes over, trials go on, nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

import jupyter_autotrain
from jupyter_autotrain import manager
from jupyter_autotrain.agent import VERSION, system
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import OutdatedError
from jupyter_autotrain.manager.contact import ManagerIdentity, is_newer
from jupyter_autotrain.store import Store
from jupyter_autotrain.store.schema import MIGRATIONS
from jupyter_autotrain.testing import wait_until

pytestmark = pytest.mark.fault
PACKAGE = Path(jupyter_autotrain.__file__).parent
NEWER = "7.0.0"
CODE = "import time\nfor step in range(10**6):\n    report(step=step, acc=step)\n    time.sleep(0.02)\n"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "static", "labextension", "parallel", "testing")


def changed(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Return a folder with a newer version of the package."""
    folder = tmp_path_factory.mktemp("newer")
    shutil.copytree(PACKAGE, folder / "jupyter_autotrain", ignore=LEFT_OUT)
    changed(folder / "jupyter_autotrain" / "agent" / "__init__.py", f'VERSION = "{VERSION}"', f'VERSION = "{NEWER}"')
    return folder


@pytest.fixture(scope="module")
def newest(tmp_path_factory, newer):
    """One that has changed the schema of the store, too."""
    folder = tmp_path_factory.mktemp("newest")
    shutil.copytree(newer, folder, dirs_exist_ok=True)
    added = '"ALTER TABLE experiments ADD COLUMN colour TEXT",\n)\n'
    path = folder / "jupyter_autotrain" / "store" / "schema.py"
    path.write_text(path.read_text().rstrip().removesuffix(")") + added)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    yield home
    with manager.stopped(home):
        end_trials(home)


def end_trials(home):
    """End what still trains: no manager stops trials when it is stopped itself."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if f"{home.root}/experiments/" in " ".join(process.cmdline()):
                process.kill()


def run(version, code, home):
    """Run code in a process of another version; return what it prints."""
    head = (
        "import jupyter_autotrain, sys; from pathlib import Path; from jupyter_autotrain import manager;"
        "from jupyter_autotrain.core.home import Home; from jupyter_autotrain.store import Store;"
        "from jupyter_autotrain.client import Experiment; home = Home(Path(sys.argv[1]))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(version)}
    argv = [sys.executable, "-P", "-c", head + code, str(home.root)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def begin(home):
    """Return an experiment of this version, whose trial runs; gives its handle."""
    bundle = home.bundle("e1")
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text(CODE)
    store = Store.open(home)
    store.add_experiment("e1", ExperimentSpec("exp", Bundle(python=sys.executable)), time.time())
    manager.ensure(home)
    wait_until(lambda: store.points("e1"), "the first point")
    return Experiment(home, store, "e1", {})


def serving(home):
    return ManagerIdentity.read(home.manager_lock)


def supervisor(home):
    return json.loads((home.trial("e1", 1, 1) / "status.json").read_text())["supervisor"][0]


def steps(store):
    return [point.step for point in store.points("e1")]


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [("0.2.0", "0.1.0", True), ("0.10.0", "0.9.0", True), ("1.0", "1.0", False), ("1.0.dev1", "1.0", False),
     ("0.1", "", True), ("", "0.1", False), ("odd", "0.1", False)],
)  # fmt: skip
def test_versions_are_compared_as_versions(version, than, expected):
    assert is_newer(version, than) is expected


def test_the_manager_of_an_older_version_hands_over_to_the_newer_one_and_its_trial_goes_on(home, newer):
    experiment = begin(home)
    first = serving(home)
    process = supervisor(home)
    assert first.version == VERSION
    assert run(newer, "print(jupyter_autotrain.__version__, manager.ensure(home).version)", home).split() == [NEWER] * 2
    second = serving(home)
    assert (second.version, second.alive) == (NEWER, True)
    assert not first.alive
    seen = len(steps(experiment.store))
    wait_until(lambda: len(steps(experiment.store)) > seen + 20, "points that the newer manager has read")
    assert supervisor(home) == process
    # A kernel of the older version goes on with the newer manager, and starts none of its own.
    receipt = experiment.stop()
    assert process in {*receipt.pids_ended, *receipt.pids_killed} or receipt.pids_ended
    assert steps(experiment.store) == list(range(len(steps(experiment.store))))
    assert [trial.attempt for trial in experiment.trials] == [1]
    assert serving(home) == second


def test_a_message_of_a_newer_client_makes_an_older_manager_leave(home, newer):
    begin(home)
    first = serving(home)
    run(newer, "manager.notify(home)", home)
    wait_until(lambda: not first.alive, "the end of the older manager")
    assert f"version {NEWER} takes over" in home.manager_log.read_text()
    assert "Traceback" not in home.manager_log.read_text()


def test_an_older_version_starts_no_manager_where_a_newer_one_has_served(home, newer):
    run(newer, "manager.ensure(home)", home)
    with manager.stopped(home):
        pass
    with pytest.raises(OutdatedError, match=f"served by jupyter-autotrain {NEWER}; this is {VERSION}"):
        manager.ensure(home)
    assert not manager.status(home).alive


def test_a_newer_schema_ends_older_processes_with_one_sentence_and_no_trial(home, newest):
    experiment = begin(home)
    first = serving(home)
    process = supervisor(home)
    assert run(newest, "with Store.open(home) as store: print(len(store.ids()))", home).split() == ["1"]
    with pytest.raises(OutdatedError, match="Restart the kernel"):
        experiment.state  # noqa: B018 - a kernel of the older version, whose handle is open
    wait_until(lambda: not first.alive, "the end of the older manager")
    assert "Traceback" not in home.manager_log.read_text()
    (copy,) = home.root.glob("store.sqlite.schema-*")
    with closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert kept.execute("SELECT id FROM experiments").fetchall() == [("e1",)]
    assert not system.look(process).is_zombie
    ended = (
        "import time; manager.ensure(home); experiment = Experiment(home, Store.open(home), 'e1', {})\n"
        "before = len(experiment.store.points('e1'))\n"
        "while len(experiment.store.points('e1')) < before + 20: time.sleep(0.01)\n"
        "receipt = experiment.stop(); print(receipt.pids_left, experiment.state, experiment.trials[0].attempt)\n"
        "found = [point.step for point in experiment.store.points('e1')]\n"
        "print(found == [*range(len(found))])"
    )
    assert run(newest, ended, home).split() == ["()", "CANCELLED", "1", "True"]


def test_a_request_of_a_newer_client_is_answered_by_the_manager_of_its_version(home, newer):
    begin(home)
    code = "experiment = Experiment(home, Store.open(home), 'e1', {}); print(experiment.request('concurrency', {}))"
    number = int(run(newer, code, home))
    with Store.open(home) as store:
        wait_until(lambda: store.request(number).done, "the answer")
    assert serving(home).version == NEWER
