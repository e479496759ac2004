"""A manager that a signal holds, and that holds up nobody else."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing

import psutil

from jupyter_autotrain.core.home import Home

_DEADLINE_S = 240.0
_BETWEEN_S = 0.02


def pause_between_writes(pid: int, home: Home) -> None:
    """Hold a manager that is not in the middle of a transaction: then another one can write to the store."""
    deadline = time.monotonic() + _DEADLINE_S
    os.kill(pid, signal.SIGSTOP)
    while not _is_held(pid) or not _is_writable(home):
        assert time.monotonic() < deadline, "the manager is always writing"
        os.kill(pid, signal.SIGCONT)
        time.sleep(_BETWEEN_S)
        os.kill(pid, signal.SIGSTOP)


def _is_held(pid: int) -> bool:
    deadline = time.monotonic() + _DEADLINE_S
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        if time.monotonic() > deadline:
            return False
    return True


def _is_writable(home: Home) -> bool:
    with closing(sqlite3.connect(home.store, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # locked
            return False
        connection.execute("ROLLBACK")
    return True
