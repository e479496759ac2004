"""One handle through everything that can happen to its file and its process."""

import shutil
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective, Summary
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import LeaseLostError, StoreError
from jupyter_autotrain.store import Ingest, Store

SPEC = ExperimentSpec("a", Bundle())


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as store:
        yield store


def test_a_handle_follows_its_home_when_that_is_made_anew(home, store):
    store.add_experiment("old", SPEC, 0.0)
    shutil.rmtree(home.root)
    with Store.open(home) as other:
        other.add_experiment("new", SPEC, 0.0)
        store.add_experiment("newer", SPEC, 0.0)
        assert [record.id for record in other.experiments()] == ["newer", "new"]
    assert [record.id for record in store.experiments()] == ["newer", "new"]
    assert store.data_version() > 1 << 40


def test_a_handle_whose_home_is_gone_says_so_and_acknowledges_nothing(home, store):
    shutil.rmtree(home.root)
    with pytest.raises(StoreError, match="is gone") as caught:
        store.add_experiment("a1", SPEC, 0.0)
    assert all((caught.value.found, caught.value.expected, caught.value.action))
    assert caught.value.__cause__ is None
    assert not home.root.exists()


def test_a_closed_handle_stays_closed(home, store):
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.experiments()


FORKING = """
import os, sys
from pathlib import Path
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective, Summary
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store

home = Home(Path(sys.argv[1]))
store, spec = Store.open(home), ExperimentSpec("a", Bundle())

def locks():
    status = home.store.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return sum(f" {os.getpid()} {place} " in line for line in Path("/proc/locks").read_text().splitlines())

store.add_experiment("parent", spec, 0.0)
held = locks()
assert held
child = os.fork()
if child == 0:
    store.add_experiment("child", spec, 0.0)
    other = Store.open(home)
    other.add_experiment("child-again", spec, 0.0)
    other.close()
    os._exit(0 if locks() == held else 1)
assert os.waitpid(child, 0)[1] == 0, "the child reads and writes without locks"
assert locks() == held, "the child took the parent's locks along"
store.add_experiment("after", spec, 0.0)
print(sorted(record.id for record in store.experiments()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/locks tells who holds which lock on Linux only")
def test_a_forked_process_holds_locks_of_its_own(home):
    argv = [sys.executable, "-c", textwrap.dedent(FORKING), str(home.root)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout == "['after', 'child', 'child-again', 'parent']\n", done.stderr


def test_who_has_lost_the_lease_writes_no_more_and_reads_on(home, store):
    assert store.take_lease("first") == 1
    store.add_experiment("a1", SPEC, 0.0)
    with Store.open(home) as rival, Store.open(home) as client:
        assert rival.take_lease("second") == 2
        with pytest.raises(LeaseLostError, match="second"):
            store.add_trial("a1", 1, {}, 0.0)
        assert store.trials("a1") == []
        rival.add_trial("a1", 1, {}, 0.0)
        client.add_request("stop", "a1", {}, 0.0)
    assert len(store.trials("a1")) == 1


def ingest(store, before, after, steps):
    row = Ingest("a1", 1, 1, "metrics", after, [("x", step, 0.0, 1.0) for step in steps], cursor_before=before)
    return store.ingest([row])


def test_no_byte_of_a_stream_becomes_a_point_twice(store):
    store.add_experiment("a1", SPEC, 0.0)
    ingest(store, 0, 100, [1, 2])
    ingest(store, 0, 100, [1, 2])
    for before in (0, 150):
        (left_out,) = ingest(store, before, 200, [1, 2, 3])
        assert left_out.cursor_before == before
    assert ingest(store, 100, 200, [3]) == []
    assert [point.step for point in store.points("a1")] == [1, 2, 3]


def test_the_file_itself_refuses_the_same_bytes_of_a_series_twice(home, store):
    store.add_experiment("a1", SPEC, 0.0)
    ingest(store, 0, 100, [1, 2])
    connection = sqlite3.connect(home.store)
    again = "INSERT INTO chunks SELECT 1000, 1001, experiment, series, columns, source_offset FROM chunks"
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(again)
    connection.close()


def test_names_that_become_one_name_share_a_series(store):
    store.add_experiment("a1", SPEC, 0.0)
    points = [("\ud800", 1, 0.0, 1.0), ("\ud801", 2, 0.0, 1.0)]
    store.ingest([Ingest("a1", 1, 1, "metrics", 10, points)])
    assert [(point.name, point.step) for point in store.points("a1")] == [("?", 1), ("?", 2)]


def test_durations_are_counted_on_a_clock_that_nobody_sets(store):
    begun = BootTime("this boot", 50.0)
    record = store.add_experiment("a1", SPEC, 1000.0, begun)
    assert store.experiment("a1").begun == begun
    assert record.now_s(9e9, BootTime("this boot", 57.5)) == 1007.5
    assert record.now_s(9e9, BootTime("the next boot", 1.0)) == 9e9
    store.begin_experiment("a1", BootTime("the next boot", 2.0))
    assert store.experiment("a1").now_s(9e9, BootTime("the next boot", 5.0)) == 1003.0
    assert store.add_experiment("b1", SPEC, 1000.0).now_s(2000.0, BootTime("this boot", 1.0)) == 2000.0
    assert BootTime.now().since(BootTime.now()) <= 0
    assert record.counts.get(TrialState.RUNNING) is None


def test_a_row_that_read_nothing_only_adds_its_notes(store):
    store.add_experiment("a1", SPEC, 0.0)
    ingest(store, 0, 100, [1, 2])
    store.ingest([Ingest("a1", 1, 1, "metrics", 100, notes=[(1.0, "error", "unread", 1)], cursor_before=100)])
    assert [note.text for note in store.notes("a1")] == ["unread"]
    assert store.cursor("a1", 1, 1, "metrics") == 100


def test_reports_that_are_forgotten_can_be_taken_in_again(store):
    objective = Objective("x", summary=Summary.MEAN)
    store.add_experiment("a1", SPEC, 0.0)
    store.add_trial("a1", 1, {}, 0.0)
    row = Ingest("a1", 1, 1, "metrics", 9, [("x", 1, 0.0, 3.0)], [(1.0, "info", "n", 1)], objective=objective)
    store.ingest([row])
    store.forget_reports("a1", 1, 1)
    assert (store.points("a1"), store.notes("a1"), store.trial("a1", 1).value) == ([], [], None)
    store.ingest([row])
    assert [point.value for point in store.points("a1")] == [3.0]
    assert store.trial("a1", 1).value == 3.0
