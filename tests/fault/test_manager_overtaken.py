"""The real manager when its files are taken away under it: one manager, one of each point, heard soon."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
import time
from contextlib import suppress

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.manager.contact import ManagerIdentity, WakeupSocket
from jupyter_autotrain.store import Store
from tests.fault.local_trials import remove
from tests.fault.paused_manager import pause_between_writes

pytestmark = pytest.mark.fault
DEADLINE_S = 240.0
HEARD_S = 60.0  # within a second on a machine that is not busy


def until(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def managers(home):
    """Return the processes that serve a home."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["jupyter_autotrain.manager", str(home.root)]:
                found.append(process)
    return found


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    home = Home(tmp_path / "home")
    yield home
    shutil.rmtree(home.root, ignore_errors=True)  # whereupon trials end by themselves
    left = managers(home)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=240)


def submit(home, store, experiment_id, code="", **spec):
    bundle = home.bundle(experiment_id)
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text(textwrap.dedent(code))
    store.add_experiment(experiment_id, ExperimentSpec("exp", Bundle(python=sys.executable), **spec), time.time())


COUNTING = """
    import time
    for step in range(150):
        report(step=step, acc=step)
        time.sleep(0.01)
"""


def ended(store, experiment_id):
    """On a slow machine the trials end before the last round."""
    return store.experiment(experiment_id).state.is_final


def test_a_lock_file_deleted_again_and_again_doubles_no_point_and_leaves_one_manager(home):
    with Store.open(home) as store:
        submit(home, store, "e1", COUNTING, trials=4, concurrency=2)
        manager.ensure(home)
        until(lambda: store.points("e1"), "the first point")
        for _ in range(5):
            seen = len(store.points("e1"))
            home.manager_lock.unlink()
            manager.ensure(home)
            until(lambda seen=seen: len(store.points("e1")) > seen or ended(store, "e1"), "another point")
        until(lambda: store.experiment("e1").state.is_final, "the end")
        points = sorted((point.number, point.attempt, point.step) for point in store.points("e1"))
        assert points == [(number, 1, step) for number in range(1, 5) for step in range(150)]
        assert {trial.state.value for trial in store.trials("e1")} == {"SUCCEEDED"}
    until(lambda: len(managers(home)) == 1, "one manager is left")
    assert ManagerIdentity.read(home.manager_lock).pid == managers(home)[0].pid


def heard_s(home, store, experiment_id):
    """Submit, and tell how long it takes until the manager has made the first trial of it."""
    submit(home, store, experiment_id)
    begun_s = time.monotonic()
    manager.notify(home)
    until(lambda: store.trials(experiment_id), "the submit is seen")
    return time.monotonic() - begun_s


def deleted(home):
    home.wakeup_socket.unlink(missing_ok=True)


def replaced_by_a_file(home):
    deleted(home)
    home.wakeup_socket.write_text("")


def replaced_by_a_deaf_socket(home):
    deleted(home)
    WakeupSocket(home.wakeup_socket).open()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the deaf socket is dropped on purpose
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(deleted, marks=pytest.mark.long),
        pytest.param(replaced_by_a_file, marks=pytest.mark.long),
        replaced_by_a_deaf_socket,
    ],
)
def test_an_idle_manager_sees_a_submit_soon_whatever_became_of_its_socket(home, spoil):
    manager.ensure(home)
    took_s = []
    with Store.open(home) as store:
        for number in range(2):
            until(lambda: not store.unfinished(), "the manager is idle")
            spoil(home)
            took_s.append(heard_s(home, store, f"e{number}"))
    assert min(took_s) < HEARD_S, took_s
    until(home.wakeup_socket.is_socket, "the socket is back")
    assert manager.notify(home)


def test_a_home_removed_and_made_anew_is_served_by_a_new_manager_that_the_old_one_leaves_alone(home):
    old = manager.ensure(home)
    remove(home)
    with Store.open(home) as store:
        new = manager.ensure(home)
        assert new.pid != old.pid
        until(lambda: not old.alive, "the old manager ends")
        took_s = [heard_s(home, store, f"e{number}") for number in range(3)]
    assert min(took_s) < HEARD_S, took_s
    assert ManagerIdentity.read(home.manager_lock) == new
    assert manager.notify(home)


def test_a_manager_whose_home_is_gone_ends_and_does_not_bring_it_back(home):
    identity = manager.ensure(home)
    remove(home)
    until(lambda: not identity.alive, "the manager ends")
    assert not home.root.exists()


def test_a_manager_that_slept_while_another_took_over_writes_no_more(home):
    with Store.open(home) as store:
        submit(home, store, "e1", COUNTING, trials=2)
        first = manager.ensure(home)
        until(lambda: store.points("e1"), "the first point")
        pause_between_writes(first.pid, home)
        home.manager_lock.unlink()
        second = manager.ensure(home)
        assert second.pid != first.pid
        seen = len(store.points("e1"))
        until(lambda: len(store.points("e1")) > seen or ended(store, "e1"), "the second one goes on")
        os.kill(first.pid, signal.SIGCONT)
        until(lambda: not first.alive, "the first one ends")
        until(lambda: store.experiment("e1").state.is_final, "the end")
        steps = sorted((point.number, point.step) for point in store.points("e1"))
        assert steps == [(number, step) for number in (1, 2) for step in range(150)]
    assert ManagerIdentity.read(home.manager_lock) == second
