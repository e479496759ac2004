"""When a reader starts a manager, and when not."""

from __future__ import annotations

import os
import threading

import pytest

from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.client import manager_client
from jupyter_autotrain.client.manager_client import ManagerGuard
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import ManagerError
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.manager.start import take_lock
from jupyter_autotrain.testing import wait_until


class Reader:
    """A guard whose starts are counted; each goes on until `go_on` is set, and fails."""

    def __init__(self, home):
        self.is_needed = True
        self.starts = 0
        self.go_on = threading.Event()
        self.guard = ManagerGuard(home, lambda: self.is_needed, self._start)

    def _start(self):
        self.starts += 1
        assert self.go_on.wait(60)
        raise ManagerError("it did not start")

    def looks(self):
        self.guard.look()
        return self.starts


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    make_private(home)
    return home


@pytest.fixture
def at_once(monkeypatch):
    """Every look counts."""
    monkeypatch.setattr(manager_client, "_EVERY_S", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_reader_starts_one_manager_at_a_time_where_none_is_there_and_one_is_needed(home):
    reader = Reader(home)
    wait_until(lambda: reader.looks() == 1, "a start")
    assert [reader.looks() for _ in range(3)] == [1] * 3
    reader.is_needed = False
    reader.go_on.set()
    assert [reader.looks() for _ in range(3)] == [1] * 3
    reader.is_needed = True
    wait_until(lambda: reader.looks() >= 2, "another start")


@pytest.mark.usefixtures("at_once")
def test_no_manager_is_started_and_no_home_made_where_there_is_none(tmp_path):
    reader = Reader(Home(tmp_path / "none"))
    assert [reader.looks() for _ in range(3)] == [0] * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("at_once")
def test_no_manager_is_started_where_another_machine_serves_the_home_or_one_begins_to(home):
    reader = Reader(home)
    lock = take_lock(home)
    assert [reader.looks() for _ in range(3)] == [0] * 3
    ManagerIdentity(ProcessIdentity(1, 0.0, ""), "another machine").write(lock)
    os.close(lock)
    assert [reader.looks() for _ in range(3)] == [0] * 3


def test_a_reader_looks_now_and_then_only(home):
    reader = Reader(home)
    assert [reader.looks() for _ in range(100)] == [0] * 100
