"""Only the same user is heard, and only the same user is told."""

import json
import os
import socket

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.manager import contact


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def wakeup(home):
    opened = contact.WakeupSocket(home.wakeup_socket)
    opened.open()
    yield opened
    opened.close()


def test_a_message_of_ones_own_arrives(wakeup, home):
    assert contact.notify(home, {"secrets": {"e1": {"KEY": "v"}}})
    assert wakeup.messages() == [{"secrets": {"e1": {"KEY": "v"}}}]


def test_a_message_of_another_user_is_ignored(wakeup, home, monkeypatch):
    assert contact.notify(home, {"a": 1})
    monkeypatch.setattr(contact.os, "geteuid", lambda: 54321)
    assert wakeup.messages() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_ignored(wakeup, home):
    home.root.chmod(0o755)
    home.wakeup_socket.chmod(0o666)
    ready, told = os.pipe()
    folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.sendto(json.dumps({"a": 1}).encode(), f"/proc/self/fd/{folder}/manager.sock")
        os.write(told, b"1")
        os._exit(0)
    os.close(told)
    sent = os.read(ready, 1)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(folder)
    assert sent == b"1"
    assert wakeup.messages() == []


def test_secrets_are_sent_to_no_socket_of_another_user(wakeup, home, monkeypatch):
    monkeypatch.setattr(contact.os, "geteuid", lambda: 54321)
    assert not contact.notify(home, {"secrets": {}})
    monkeypatch.undo()
    assert wakeup.messages() == []


def test_nothing_is_told_to_what_is_no_socket(home):
    home.wakeup_socket.write_text("")
    assert not contact.notify(home)
    home.wakeup_socket.unlink()
    home.wakeup_socket.symlink_to(home.root / "elsewhere")
    assert not contact.notify(home)


def test_a_message_that_is_nested_without_end_is_passed_over(wakeup, home):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"[" * 100_000, str(home.wakeup_socket))
    assert contact.notify(home, {"a": 1})
    assert wakeup.messages() == [{"a": 1}]
