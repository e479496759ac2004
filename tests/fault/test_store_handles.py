"""Handles of one store, kept and dropped in several processes at once: the last to leave never takes the log along."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store, database

pytestmark = pytest.mark.fault
ROUNDS = 100
LOCKS = Path("/proc/locks")
PREAMBLE = """
import sys
from pathlib import Path
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store
home = Home(Path(sys.argv[1]))
def keep(store, name):
    store.add_experiment(name, ExperimentSpec("a", Bundle()), 0.0)
"""
# Comes and goes like a manager with no idle time.
VISITOR = """
for line in sys.stdin:
    with Store.open(home) as store:
        keep(store, f"visitor-{line.strip()}")
    print(line.strip(), flush=True)
"""
# Holds a handle, and opens and drops others beside it, like a notebook.
NOTEBOOK = """
kept = Store.open(home)
for line in sys.stdin:
    Store.open(home).experiments()
    keep(kept, f"{sys.argv[2]}-{line.strip()}")
    print(line.strip(), flush=True)
"""


def start(home, body, *arguments):
    argv = [sys.executable, "-c", PREAMBLE + textwrap.dedent(body), str(home.root), *arguments]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(processes, word):
    """Have all of them do one round, at the same time."""
    for process in processes:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    for process in processes:
        assert process.stdout.readline() == f"{word}\n"


@pytest.mark.parametrize("notebooks", [pytest.param(1, marks=pytest.mark.long), 3])
def test_all_that_was_acknowledged_is_there_after_a_hundred_comings_and_goings(tmp_path, notebooks):
    home = Home(tmp_path / "home")
    names = [str(number) for number in range(notebooks)]
    readers = [start(home, NOTEBOOK, name) for name in names]
    visitor = start(home, VISITOR)
    for round_ in range(ROUNDS):
        tell(readers, str(round_))
        tell([visitor], str(round_))
        if round_ % 2:
            tell([*readers, visitor], f"{round_}-at-once")
    for process in (*readers, visitor):
        process.communicate()
        assert process.returncode == 0
    connection = sqlite3.connect(home.store)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept = {row[0] for row in connection.execute("SELECT id FROM experiments")}
    connection.close()
    words = [f"{round_}{end}" for round_ in range(ROUNDS) for end in ("", "-at-once") if not end or round_ % 2]
    assert kept == {f"{name}-{word}" for name in (*names, "visitor") for word in words}


def locks_held(home):
    """Return the locks (flock, fcntl) that this process holds on the store's file, from `/proc/locks`."""
    status = home.store.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return sum(f" {os.getpid()} {place} " in line for line in LOCKS.read_text().splitlines())


@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not tell who holds which lock")
def test_opening_another_handle_gives_up_no_lock_of_the_first(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.experiments()
        before = locks_held(home)
        assert before
        Store.open(home).close()
        assert locks_held(home) == before


def test_the_file_is_private_before_anything_is_in_it(tmp_path, monkeypatch):
    modes = []

    def look(path, *arguments, connect=sqlite3.connect, **options):
        modes.append(path.stat().st_mode & 0o777)
        return connect(path, *arguments, **options)

    monkeypatch.setattr(database.sqlite3, "connect", look)
    umask = os.umask(0)
    try:
        home = Home(tmp_path / "home")
        with Store.open(home) as store:
            store.add_experiment("a1", ExperimentSpec("a", Bundle()), 0.0)
            parts = [path.stat().st_mode & 0o777 for path in home.root.glob("store.sqlite*")]
    finally:
        os.umask(umask)
    assert modes == [0o600]
    assert parts == [0o600] * 3
