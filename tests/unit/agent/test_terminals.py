"""Terminals of a session: a shell is told as ended when it has, and not before."""

from __future__ import annotations

import os
import signal
import subprocess

from jupyter_autotrain.agent.session.terminals import Terminals
from jupyter_autotrain.testing import wait_until


def asked(kind, data=b""):
    return {"msg_type": kind, "content": {"id": "a", "rows": 24, "columns": 80}, "buffers": [data]}


def test_a_shell_that_has_not_opened_its_terminal_yet_has_not_ended(monkeypatch):
    begin = subprocess.Popen
    begun = []

    def held(*args, **words):
        process = begin(*args, **words)
        os.kill(process.pid, signal.SIGSTOP)
        begun.append(process)
        return process

    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setattr(subprocess, "Popen", held)
    terminals = Terminals()
    terminals.take(asked("shell_open"))
    told = terminals.said()
    os.kill(begun[0].pid, signal.SIGCONT)
    terminals.take(asked("shell_keys", b"exit\n"))

    def has_ended():
        told.extend(terminals.said())
        return not terminals

    wait_until(has_ended, "the end of the shell")
    kinds = [one["header"]["msg_type"] for one in told]
    assert kinds.count("shell_closed") == 1
    assert begun[0].returncode == 0
