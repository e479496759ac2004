"""Damaged stores: what can be read is saved, what cannot is named, nothing is deleted."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from jupyter_autotrain import cli, manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.store.repair import repair
from jupyter_autotrain.verbs import doctor
from tests.matrices import long_besides

pytestmark = pytest.mark.fault
EXPERIMENTS = 30
TRIALS = 4
STEPS = 50
PAGE_BYTES = 4096
OBJECTIVE = Objective("loss")
METRICS = '["v",1]\n' + "".join(f'["m",{step},0.0,{{"loss":{step}}}]\n' for step in range(STEPS))


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setattr(doctor, "_check_sidebar", lambda environ: iter(()))  # which JupyterLab loads takes seconds
    return home


def fill(home):
    with Store.open(home) as store:
        for number in range(EXPERIMENTS):
            name = f"e{number:02}"
            spec = ExperimentSpec(f"name{number % 3}", Bundle(), header="x" * 500, objective=OBJECTIVE)
            store.add_experiment(name, spec, 0.0)
            for trial in range(1, TRIALS + 1):
                home.trial(name, trial, 1).mkdir(parents=True)
                (home.trial(name, trial, 1) / "metrics").write_text(METRICS)
                store.add_trial(name, trial, {"lr": 0.1}, 0.0)
                for state in ("PREPARING", "RUNNING", "SUCCEEDED"):
                    store.change_state(name, trial, TrialState(state), 1.0)
                rows = [("loss", step, 0.0, float(step)) for step in range(STEPS)]
                store.ingest([Ingest(name, trial, 1, "metrics", len(METRICS), rows, objective=OBJECTIVE)])
            store.close_experiment(name, 2.0)
    for copy in home.root.rglob("rows.json"):  # they are lost too
        copy.unlink()


LEAVES_OF_EXPERIMENTS = "SELECT pageno FROM dbstat WHERE name = 'experiments' AND pagetype = 'leaf' ORDER BY path"


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        tables = ("experiments", "trials", "moves", "chunks", "notes", "requests", "names")
        return {table: set(connection.execute(f"SELECT * FROM {table}")) for table in tables}


def is_whole(path):
    with closing(sqlite3.connect(path)) as connection:
        return (
            connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            and not connection.execute("PRAGMA foreign_key_check").fetchall()
        )


def spoil(home, pages):
    """Overwrite pages, as a failing disk does."""
    choose = random.Random(5)
    with home.store.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(choose.randbytes(PAGE_BYTES))


def page_count(home):
    return home.store.stat().st_size // PAGE_BYTES


def pages_below_the_roots(home):
    """Return all pages but the roots of tables: a table whose root page is damaged cannot be found at all."""
    with closing(sqlite3.connect(home.store)) as connection:
        roots = {page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master")}
    return [page for page in range(2, page_count(home)) if page not in roots]


def test_what_lies_between_two_damaged_pages_is_saved(home, capsys):
    fill(home)
    with closing(sqlite3.connect(home.store)) as connection:
        if not connection.execute("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')").fetchone()[0]:
            pytest.skip("this SQLite does not tell which pages a table has")
        pages = [page for (page,) in connection.execute(LEAVES_OF_EXPERIMENTS)]
    spoil(home, [pages[1], pages[-2]])
    assert cli.main(["doctor", "--repair"]) == 0
    assert len(pages) > 6
    assert len(rows(home.store)["experiments"]) >= EXPERIMENTS * (len(pages) - 4) // len(pages)


@pytest.mark.parametrize("seed", long_besides([0, 1, 15], [*range(7), 15]))  # the last damages the list of tables
def test_what_lies_on_whole_pages_is_saved_and_the_rest_is_named(home, capsys, seed):
    fill(home)
    before = rows(home.store)
    damaged_bytes = None
    spoil(home, random.Random(seed).sample(pages_below_the_roots(home), 3))
    damaged_bytes = home.store.read_bytes()
    assert cli.main(["doctor", "--repair"]) == 0
    told = capsys.readouterr().out
    assert is_whole(home.store)
    after = rows(home.store)
    assert all(after[table] <= before[table] for table in ("experiments", "trials", "moves", "requests"))
    lost = {row[1].decode() for row in before["experiments"] - after["experiments"]}
    assert lost == {name for name in lost if f"experiments/{name}" in told}
    assert len(after["experiments"]) >= EXPERIMENTS // 2
    assert sum(map(len, after.values())) > sum(map(len, before.values())) // 4
    (kept,) = home.root.glob("store.sqlite.damaged-*-1")
    assert kept.read_bytes() == damaged_bytes
    assert kept.name in told
    with Store.open(home) as store:
        for record in store.experiments():
            trials = store.trials(record.id)
            numbers = {trial.number for trial in trials}
            gone = set(range(1, TRIALS + 1)) - numbers
            assert all(f"experiments/{record.id}/trials/{number}\n" in told for number in gone)
            assert {trial.value for trial in trials} <= {STEPS - 1}
            points = sorted((point.number, point.step, point.value) for point in store.points(record.id))
            assert points == [(number, step, step) for number in sorted(numbers) for step in range(STEPS)]
        version = store.add_experiment("after", ExperimentSpec("name0", Bundle()), 3.0).version
        assert version > max((row[3] for row in after["experiments"] if row[2] == b"name0"), default=0)


def cut_short(data):
    return data[: len(data) // 2]


def without_its_magic(data):
    return b"X" + data[1:]


def of_another_page_size(data):
    return data[:16] + b"\x03" + data[17:]


def without_its_first_page(data):
    return bytes(PAGE_BYTES) + data[PAGE_BYTES:]


@pytest.mark.parametrize("damage", [cut_short, without_its_magic, of_another_page_size, without_its_first_page])
def test_a_file_that_is_refused_as_a_whole_is_read_from_a_mended_copy(home, capsys, damage):
    fill(home)
    before = rows(home.store)
    data = damage(home.store.read_bytes())
    home.store.write_bytes(data)
    assert cli.main(["doctor", "--repair"]) == 0
    told = capsys.readouterr().out
    assert "Damaged: the file as a whole" in told
    assert is_whole(home.store)
    after = rows(home.store)
    assert len(after["experiments"]) >= (EXPERIMENTS // 5 if damage is cut_short else EXPERIMENTS)
    assert after["experiments"] <= before["experiments"]
    assert home.root.joinpath(told.split("is kept: ")[1].split(" in ")[0]).read_bytes() == data
    assert all(".damaged-" in path.name for path in home.root.glob("store.sqlite.*"))


def test_a_store_that_is_whole_stays_the_same(home, capsys):
    fill(home)
    before = rows(home.store)
    assert cli.main(["doctor", "--repair"]) == 0
    assert rows(home.store) == before
    assert "Nothing in it was damaged." in capsys.readouterr().out


def test_a_file_that_is_no_database_any_more_is_kept_and_all_experiments_are_named(home, capsys):
    fill(home)
    home.store.write_bytes(b"x" * 20_000)
    assert cli.main(["doctor"]) == 1
    assert "doctor --repair" in capsys.readouterr().out
    assert cli.main(["doctor", "--repair"]) == 0
    told = capsys.readouterr().out
    assert all(f"experiments/e{number:02}" in told for number in range(EXPERIMENTS))
    (kept,) = home.root.glob("store.sqlite.damaged-*")
    assert kept.read_bytes() == b"x" * 20_000
    with Store.open(home) as store:
        assert store.experiments() == []


def test_what_stands_only_in_the_log_is_saved_too(home):
    script = (
        "import os, sys; from pathlib import Path; from jupyter_autotrain.core.home import Home;"
        "from jupyter_autotrain.core.spec import Bundle, ExperimentSpec; from jupyter_autotrain.store import Store;"
        "store = Store.open(Home(Path(sys.argv[1])));"
        "store.add_experiment('a1', ExperimentSpec('a', Bundle()), 0.0); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, home.root], check=True)
    assert home.root.joinpath("store.sqlite-wal").stat().st_size
    report = repair(home.store)
    assert report.saved["experiments"] == 1
    assert [path.name for path in home.root.glob("store.sqlite-*")] == []
    assert rows(report.kept_at)["experiments"]


def test_handles_kept_open_elsewhere_go_on_in_the_repaired_store(home):
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 0.0)
        repair(home.store)
        store.add_experiment("a2", ExperimentSpec("a", Bundle()), 0.0)
        with Store.open(home) as other:
            assert [record.id for record in other.experiments()] == ["a2", "a1"]
    assert is_whole(home.store)


def test_a_store_that_another_process_writes_is_left_alone(home, monkeypatch):
    monkeypatch.setattr("jupyter_autotrain.store.repair._TIMEOUT_S", 0.1)
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 0.0)
        with closing(sqlite3.connect(home.store, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="being written"):
                repair(home.store)
        assert len(store.experiments()) == 1
    assert not list(home.root.glob("store.sqlite.*"))


def test_a_repair_under_a_running_manager_loses_no_trial_and_no_point(home, monkeypatch, capsys):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    code = "import time\nfor step in range(200):\n    report(step=step, acc=step)\n    time.sleep(0.02)\n"
    bundle = home.bundle("e1")
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text(code)
    deadline_s = time.monotonic() + 240
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("exp", Bundle(python=sys.executable)), time.time())
        first = manager.ensure(home)
        while not store.points("e1"):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert cli.main(["doctor", "--repair"]) == 0
        assert not first.alive
        while not store.experiment("e1").state.is_final:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert [point.step for point in store.points("e1")] == list(range(200))
        assert [trial.attempt for trial in store.trials("e1")] == [1]
    with manager.stopped(home):
        assert not manager.status(home).alive
