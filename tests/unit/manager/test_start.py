"""Identity, lock and socket."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import LeaseLostError, ManagerError
from jupyter_autotrain.manager import ensure, notify, status
from jupyter_autotrain.manager.contact import ManagerIdentity, WakeupSocket
from jupyter_autotrain.manager.jobs.metrics_stream import parse
from jupyter_autotrain.manager.leadership import Leadership
from jupyter_autotrain.manager.start import is_lock_in_place, take_lock
from jupyter_autotrain.store import Store


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def wakeup(home):
    wakeup = WakeupSocket(home.wakeup_socket)
    wakeup.open()
    yield wakeup
    wakeup.close()


def test_a_pid_used_again_is_not_the_same_process():
    me = ManagerIdentity.of(os.getpid())
    assert me.alive
    assert not replace(me, process=ProcessIdentity(me.pid, 1.0, me.process.boot_id)).alive
    assert not replace(me, process=ProcessIdentity(me.pid, me.process.created_s, "another")).alive
    assert not replace(me, host="another").alive


def test_an_ended_process_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ManagerIdentity.of(child.pid)
    assert identity.alive
    child.communicate(b"\n")
    assert not identity.alive


def test_the_lock_is_held_once_and_a_stale_one_is_harmless(home):
    home.manager_lock.write_text("not an identity")
    lock = take_lock(home)
    assert lock is not None
    assert take_lock(home) is None
    os.close(lock)
    again = take_lock(home)
    assert again is not None
    os.close(again)


def test_a_lock_whose_file_was_deleted_is_told_from_one_in_place(home):
    lock = take_lock(home)
    assert is_lock_in_place(home, lock)
    home.manager_lock.unlink()
    assert not is_lock_in_place(home, lock)
    other = take_lock(home)
    assert is_lock_in_place(home, other)
    assert not is_lock_in_place(home, lock)
    os.close(lock)
    os.close(other)


@pytest.fixture
def leading(home):
    """Yield a leadership of this very process."""
    lock = take_lock(home)
    with Store.open(home) as store:
        leadership = Leadership(home, store, lock, ManagerIdentity.of(os.getpid()))
        leadership.publish_identity(True)
        yield leadership
        leadership.close()
    os.close(lock)


def test_a_manager_whose_lock_file_is_deleted_takes_the_lock_again(home, leading):
    leading.renew()
    home.manager_lock.unlink()
    leading.renew()
    assert ManagerIdentity.read(home.manager_lock) == ManagerIdentity.of(os.getpid())
    assert take_lock(home) is None


def test_a_manager_whose_lock_another_one_holds_ends_and_leaves_everything_alone(home, leading):
    home.manager_lock.unlink()
    other = take_lock(home)
    with pytest.raises(SystemExit, match="another manager"):
        leading.renew()
    assert home.manager_lock.read_text() == ""
    os.close(other)


def test_a_manager_that_was_overtaken_and_finds_the_lock_free_again_ends(home, leading):
    home.manager_lock.unlink()
    with Store.open(home) as store:
        store.take_lease("another")
    with pytest.raises(LeaseLostError):
        leading.renew()
    assert home.manager_lock.read_text() == ""


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_manager_whose_home_was_removed_ends_and_makes_none(home, leading, made_anew):
    home.root.rename(home.root.with_name(f"{home.root.name}-away"))
    if made_anew:
        home.root.mkdir()
    with pytest.raises(SystemExit, match="removed"):
        leading.renew()
    assert not home.manager_lock.exists()


def test_a_socket_that_was_deleted_or_replaced_is_opened_again(home, wakeup):
    other = WakeupSocket(home.wakeup_socket)
    for replace_it in (bool, lambda: home.wakeup_socket.write_text("a file"), other.open):
        home.wakeup_socket.unlink()
        replace_it()
        wakeup.reopen_if_deleted()
        assert notify(home, {"a": 1})
        assert wakeup.messages() == [{"a": 1}]
    other.close()
    assert home.wakeup_socket.is_socket()


def test_closing_a_socket_leaves_that_of_another_manager(home, wakeup):
    other = WakeupSocket(home.wakeup_socket)
    other.open()
    wakeup.close()
    assert notify(home, {"a": 1})
    assert other.messages() == [{"a": 1}]
    other.close()
    assert not home.wakeup_socket.exists()


def test_a_living_manager_is_found_and_not_started_again(home):
    lock = take_lock(home)
    ManagerIdentity.of(os.getpid()).write(lock)
    assert ensure(home).pid == os.getpid()
    assert (status(home).alive, status(home).pid) == (True, os.getpid())
    assert status(home).resident_bytes > 1_000_000
    os.close(lock)


def test_a_home_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ManagerError, match="cannot be written"):
        ensure(Home(tmp_path / "file" / "home"))


def test_messages_arrive_once_and_the_socket_is_private(home, wakeup):
    assert notify(home)
    assert notify(home, {"secrets": {"e1": {"TOKEN": "x"}}})
    assert wakeup.messages() == [{}, {"secrets": {"e1": {"TOKEN": "x"}}}]
    assert wakeup.messages() == []
    assert home.wakeup_socket.stat().st_mode & 0o777 == 0o600


def test_notify_is_false_when_nobody_listens(home, wakeup):
    wakeup.close()
    assert not notify(home)


def test_a_path_too_long_for_a_socket_can_still_be_notified(tmp_path):
    home = Home(tmp_path / ("x" * 100) / ("y" * 100))
    home.root.mkdir(parents=True)
    wakeup = WakeupSocket(home.wakeup_socket)
    wakeup.open()
    assert notify(home, {"a": 1})
    assert wakeup.messages() == [{"a": 1}]
    wakeup.close()


def test_where_no_socket_can_be_the_manager_does_without(tmp_path):
    wakeup = WakeupSocket(tmp_path / "missing" / "manager.sock")
    wakeup.open()
    assert wakeup.fileno() is None
    assert wakeup.messages() == []


def test_a_message_too_large_is_refused(home, wakeup):
    with pytest.raises(ManagerError, match="At most"):
        notify(home, {"secrets": {"e1": {"A": "x" * 300_000}}})


def test_unreadable_metric_lines_become_notes_and_cost_no_others():
    data = b'["m", 1, 2.0, {"a": 1}]\nrubbish\n["m", 2, 3.0, {"a": null}]\n["n", 4.0, "info", "hi"]\n["m", 3'
    frames = parse(data, 10, "a", 5.0)
    assert frames.points == [("a", 1, 2.0, 1.0), ("a", 2, 3.0, None)]
    assert [level for _, level, _, _ in frames.notes] == ["warning", "info"]
    assert frames.cursor == 10 + data.rindex(b'["m", 3')
    assert frames.objective_seen
