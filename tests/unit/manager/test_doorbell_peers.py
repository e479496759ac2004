"""Only the same user is heard, and only the same user is told."""

import json
import os
import socket

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.manager import doorbell


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def bell(home):
    hung = doorbell.Doorbell(home.doorbell)
    hung.hang()
    yield hung
    hung.take_down()


def test_ones_own_message_is_heard(bell, home):
    assert doorbell.ring(home, {"secrets": {"e1": {"KEY": "v"}}})
    assert bell.messages() == [{"secrets": {"e1": {"KEY": "v"}}}]


def test_a_message_of_another_user_is_not_heard(bell, home, monkeypatch):
    assert doorbell.ring(home, {"a": 1})
    monkeypatch.setattr(doorbell.os, "geteuid", lambda: 54321)
    assert bell.messages() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_not_heard(bell, home):
    home.root.chmod(0o755)
    home.doorbell.chmod(0o666)
    ready, told = os.pipe()
    folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.sendto(json.dumps({"a": 1}).encode(), f"/proc/self/fd/{folder}/doorbell")
        os.write(told, b"1")
        os._exit(0)
    os.close(told)
    sent = os.read(ready, 1)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(folder)
    assert sent == b"1"
    assert bell.messages() == []


def test_secrets_are_told_to_no_socket_of_another_user(bell, home, monkeypatch):
    monkeypatch.setattr(doorbell.os, "geteuid", lambda: 54321)
    assert not doorbell.ring(home, {"secrets": {}})
    monkeypatch.undo()
    assert bell.messages() == []


def test_nothing_is_told_to_what_is_no_socket(home):
    home.doorbell.write_text("")
    assert not doorbell.ring(home)
    home.doorbell.unlink()
    home.doorbell.symlink_to(home.root / "elsewhere")
    assert not doorbell.ring(home)


def test_a_message_that_is_nested_without_end_is_passed_over(bell, home):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"[" * 100_000, str(home.doorbell))
    assert doorbell.ring(home, {"a": 1})
    assert bell.messages() == [{"a": 1}]
