"""The store when processes are killed, disks are full, files are locked and clocks jump."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store import Ingest, Store

pytestmark = pytest.mark.fault
NOBODY = 65534
PREAMBLE = """
import sys, os
from pathlib import Path
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store import Ingest, Store
home = Home(Path(sys.argv[1]))
def tell(*words): print(*words, flush=True)
"""


def start(home, body, *arguments, **options):
    argv = [sys.executable, "-c", PREAMBLE + textwrap.dedent(body), str(home.root), *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **options)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def spec(name="a"):
    return ExperimentSpec(name, Bundle())


def is_whole(home):
    with sqlite3.connect(home.store) as connection:
        good = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = not connection.execute("PRAGMA foreign_key_check").fetchall()
    connection.close()
    return good and kept


WRITER = """
store = Store.open(home)
count = 0
while True:
    count += 1
    name = f"e{count}"
    store.add_experiment(name, ExperimentSpec("a", Bundle()), 0.0)
    tell("kept", count)
    store.add_trial(name, 1, {}, 0.0)
    for cursor in range(1, 6):
        rows = [(metric, 10 * cursor + i, 0.0, float(cursor)) for metric in ("x", "y") for i in range(10)]
        store.ingest([Ingest(name, 1, 1, "metrics", cursor, rows, objective=Objective("x"))])
"""


def test_a_writer_killed_at_any_instant_leaves_nothing_half_written(home):
    choose = random.Random(7)
    for _ in range(8):
        home.root.mkdir(exist_ok=True)
        for old in home.root.glob("store.sqlite*"):
            old.unlink()
        writer = start(home, WRITER)
        acknowledged = int(writer.stdout.readline().split()[1])
        due = time.monotonic() + choose.uniform(0.0, 0.15)
        while time.monotonic() < due:
            acknowledged = int(writer.stdout.readline().split()[1])
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate()
        acknowledged += rest.count("\n")
        check_what_a_killed_writer_left(home, acknowledged)


def check_what_a_killed_writer_left(home, acknowledged):
    assert is_whole(home)
    with Store.open(home) as store:
        found = store.experiments(10**9)
        assert len(found) in {acknowledged, acknowledged + 1}
        assert [record.version for record in reversed(found)] == list(range(1, len(found) + 1))
        for record in found:
            cursor = store.cursor(record.id, 1, 1, "metrics")
            assert len(store.points(record.id)) == 20 * cursor
            if store.trials(record.id):
                assert store.trial(record.id, 1).value == (cursor or None)
                assert [move.state for move in store.state_changes(record.id)] == [TrialState.WAITING]
        store.add_experiment("after", spec(), 0.0)


def test_two_processes_that_submit_at_once_get_different_versions(home):
    body = """
    store = Store.open(home)
    tell("ready")
    sys.stdin.readline()
    for count in range(25):
        tell(store.add_experiment(f"{sys.argv[2]}-{count}", ExperimentSpec("a", Bundle()), 0.0).version)
    """
    both = [start(home, body, number, stdin=subprocess.PIPE) for number in (1, 2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    given = [int(line) for process in both for line in process.communicate()[0].split()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(given) == list(range(1, 51))


def test_two_processes_that_make_a_home_at_once_both_succeed(home):
    for round_ in range(3):
        fresh = Home(home.root / str(round_))
        both = [start(fresh, "Store.open(home).find; tell('ok')") for _ in range(3)]
        assert [process.communicate()[0] for process in both] == ["ok\n"] * 3


def test_a_store_locked_by_another_process_is_an_error_before_anything_is_acknowledged(home):
    with Store.open(home, busy_timeout_s=0.2) as store:
        blocker = start(
            home,
            """
            import sqlite3
            connection = sqlite3.connect(home.store, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            tell("locked")
            sys.stdin.readline()
            """,
            stdin=subprocess.PIPE,
        )
        assert blocker.stdout.readline() == "locked\n"
        with pytest.raises(StoreError) as caught:
            store.add_experiment("a1", spec(), 1.0)
        assert "locked by another process" in caught.value.found
        assert "0.2 s" in caught.value.expected
        assert caught.value.action
        assert store.experiments() == []
        blocker.communicate("go\n")
        assert store.add_experiment("a1", spec(), 1.0).version == 1


FILL = """
import resource, signal
store = Store.open(home)
tell("open")
limit = int(sys.argv[2])
if limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
count = 0
try:
    while True:
        store.add_experiment(f"e{count}", ExperimentSpec("a", Bundle(), header="x" * 5000), 0.0)
        count += 1
except StoreError as error:
    tell(count)
    tell("|".join((error.found, error.expected, error.action)))
"""


def check_a_full_disk(home, lines, grow):
    count = int(lines[0])
    clauses = lines[1].split("|")
    assert count > 0
    assert all(clauses)
    assert is_whole(home)
    grow()
    with Store.open(home) as store:
        assert len(store.experiments(10**9)) == count
        assert store.add_experiment("after", spec("b"), 0.0).version == 1
    return clauses[0]


def test_a_file_that_may_not_grow_loses_nothing_acknowledged(home):
    lines = start(home, FILL, 400_000).communicate()[0].splitlines()[1:]
    check_a_full_disk(home, lines, grow=lambda: None)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small disk needs root on Linux")
def test_a_full_disk_is_told_and_loses_nothing_acknowledged(home):
    disk = home.root
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k,mode=0700", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        lines = start(home, FILL, 0).communicate()[0].splitlines()[1:]
        found = check_a_full_disk(
            home, lines, grow=lambda: subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        )
        assert "full" in found
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may write everywhere")
def test_a_read_only_home_is_told_in_three_clauses(home):
    Store.open(home).close()
    if os.geteuid() == 0:
        for path in (home.root, *home.root.iterdir()):
            os.chown(path, NOBODY, NOBODY)
    home.root.chmod(0o555)
    home.store.chmod(0o444)
    body = """
    if os.geteuid() == 0: os.setuid(int(sys.argv[2]))
    try: Store.open(home)
    except StoreError as error: tell("|".join((error.found, error.expected, error.action)))
    """
    parents = [home.root.parent, *home.root.parent.parents]
    modes = {parent: parent.stat().st_mode for parent in parents[:3]}
    try:
        for parent, mode in modes.items():
            parent.chmod(mode | 0o011)
        clauses = start(home, body, NOBODY).communicate()[0].strip().split("|")
    finally:
        for parent, mode in modes.items():
            parent.chmod(mode)
        home.root.chmod(0o700)
    assert len(clauses) == 3
    assert "cannot be written" in clauses[0]
    assert all(clauses)


def test_a_clock_that_jumps_backwards_changes_no_order(home):
    times = [1e9, 5e8, 2e9, 0.0, -5.0]
    with Store.open(home) as store:
        for count, now_s in enumerate(times):
            store.add_experiment(f"e{count}", spec(), now_s)
        assert [record.id for record in store.experiments()] == ["e4", "e3", "e2", "e1", "e0"]
        assert store.find("-1").id == store.find("a").id == "e4"
        store.add_trial("e0", 1, {}, times[0])
        for state, now_s in zip(["PREPARING", "RUNNING", "FAILED", "WAITING"], times[1:], strict=True):
            store.change_state("e0", 1, TrialState(state), now_s)
        assert [move.state for move in store.state_changes("e0")] == [
            "WAITING",
            "PREPARING",
            "RUNNING",
            "FAILED",
            "WAITING",
        ]
        for cursor, now_s in enumerate(times, 1):
            store.ingest([Ingest("e0", 1, 1, "metrics", cursor, [("x", cursor, now_s, 1.0)])])
        assert [point.step for point in store.points("e0")] == [1, 2, 3, 4, 5]


def test_a_reader_sees_no_half_of_a_batch_while_another_process_writes(home):
    with Store.open(home) as store:
        store.add_experiment("e1", spec(), 0.0)
        writer = start(
            home,
            """
            store = Store.open(home)
            for cursor in range(1, 121):
                rows = [(metric, cursor, 0.0, 1.0) for metric in ("x", "y")]
                store.ingest([Ingest("e1", 1, 1, "metrics", cursor, rows)])
            """,
        )
        seen = set()
        while writer.poll() is None:
            count = len(store.points("e1"))
            assert count % 2 == 0
            seen.add(count)
        writer.communicate()
        assert writer.returncode == 0
        assert len(store.points("e1")) == 240
        assert seen <= set(range(0, 241, 2))
