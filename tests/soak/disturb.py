"""Disturbances of a home while trials run: kills, pauses, and files taken away."""

from __future__ import annotations

import collections
import os
import random
import signal
import threading
import time
from contextlib import suppress

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.core.home import Home

LONGEST_PAUSE_S = 2.5
LONGEST_CALM_S = 1.0


class Disturber:
    """Does one thing to the home every now and then, and counts what it did.

    Args:
        home: The home.
        choose: Chooses what and when.
    """

    def __init__(self, home: Home, choose: random.Random) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._home = home
        self._choose = choose
        self._due_s = 0.0
        self._resumes: list[threading.Timer] = []

    def act(self, users: list[psutil.Popen]) -> None:
        """Do something if it is time."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self._choose.uniform(0.2, LONGEST_CALM_S)
        warm = [self._kill_warm, self._pause_warm]
        own = [self._kill_manager, self._pause_manager, self._pause_trial, self._delete_lock, self._delete_socket]
        action = self._choose.choice(own + warm)
        with suppress(psutil.Error, ProcessLookupError, FileNotFoundError):
            action()
        if self._choose.random() < 0.02:
            self._choose.choice(users).kill()
            self.counts["users killed"] += 1

    def settle(self) -> None:
        """Let everything that was paused go on."""
        for timer in self._resumes:
            timer.join()
        self._resumes.clear()

    def _manager(self) -> psutil.Process:
        pid = manager.status(self._home).pid
        if pid is None:
            raise ProcessLookupError("no manager lives just now")
        return psutil.Process(pid)

    def _kill_manager(self) -> None:
        self._manager().kill()
        self.counts["managers killed"] += 1

    def _pause_manager(self) -> None:
        self._pause(self._manager())
        self.counts["managers paused"] += 1

    def _pause_trial(self) -> None:
        here = str(self._home.root)
        found = [p for p in psutil.process_iter() if _is_supervisor(p, here)]
        self._pause(self._choose.choice(found or [self._manager()]))
        self.counts["supervisors paused" if found else "managers paused"] += 1

    def _warm(self) -> psutil.Process:
        found = warm_list.living(self._home.root / warm_starts.FOLDER)
        if not found:
            raise ProcessLookupError("no warm process lives just now")
        return psutil.Process(self._choose.choice(found).process.pid)

    def _kill_warm(self) -> None:
        self._warm().kill()
        self.counts["warm processes killed"] += 1

    def _pause_warm(self) -> None:
        self._pause(self._warm())
        self.counts["warm processes paused"] += 1

    def _pause(self, process: psutil.Process) -> None:
        process.suspend()
        timer = threading.Timer(self._choose.uniform(0.1, LONGEST_PAUSE_S), _resume, (process,))
        timer.start()
        self._resumes.append(timer)

    def _delete_lock(self) -> None:
        self._home.manager_lock.unlink()
        self.counts["locks deleted"] += 1

    def _delete_socket(self) -> None:
        self._home.wakeup_socket.unlink()
        self.counts["sockets deleted"] += 1


def _is_supervisor(process: psutil.Process, here: str) -> bool:
    with suppress(psutil.Error):
        words = process.cmdline()
        return "supervisor" in words and here in words[-1]
    return False


def _resume(process: psutil.Process) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
