"""A trial that begins by two forks: of its supervisor, and of its worker from that, with what was imported beforehand.

Each gets a process, session, streams, limits, variables, random numbers and folders of its own, as in any other start.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import io
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import partial

from jupyter_autotrain.agent import fields, system, wire
from jupyter_autotrain.agent.pool import preloading
from jupyter_autotrain.agent.pool.preloading import Preloaded
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.ranks import library_hooks, worker_main
from jupyter_autotrain.agent.supervisor import supervisor, supervisor_main
from jupyter_autotrain.agent.supervisor.worker_process import execute
from jupyter_autotrain.agent.trial import trial_file, trial_lock
from jupyter_autotrain.agent.trial.trial_file import TrialFile

_LOADED = (ctypes, supervisor, worker_main, library_hooks)  # others load them when a trial begins
_STREAMS = 3
_REQUEST_S = 10.0
_PART_BYTES = 1 << 16
_SET_BY_PYTHON = ("LC_CTYPE",)  # as it starts, where the locale is C


class ForkedTrials:
    """The trials that are forked from this process.

    Args:
        preloaded: What it has imported for them.
    """

    def __init__(self, preloaded: Preloaded) -> None:
        self._preloaded = preloaded
        self._blas = preloading.loaded() if preloaded.names else []

    def run(self, connection: socket.socket, is_current: int) -> None:
        """Be the supervisor of the trial that is asked for: `{"directory", "secrets"}`; tell when it has begun.

        The process that was forked never sees the request, and so no secret.

        Args:
            connection: To who asks.
            is_current: A pipe, from which a byte comes where no file has changed since it was imported; else the
                worker starts its interpreter.
        """
        request = _receive(connection)
        directory = str(request["directory"])
        show_as([*program("supervisor"), directory])
        os.setsid()
        os.chdir(directory)
        lock = trial_lock.acquire()
        if lock is None:  # it has begun elsewhere
            return
        secrets = {name: str(value) for name, value in fields.mapping(request.get("secrets")).items()}
        trial = trial_file.read(".")
        become = None if self._hides_code(trial) else partial(self._become_worker, is_current)
        ready = os.dup(connection.fileno())
        connection.close()
        supervisor_main.supervise(trial, {**os.environ, **secrets}, lock, ready, become)

    def _hides_code(self, trial: TrialFile) -> bool:
        """Tell whether the trial brings a module that is to hide one that was imported beforehand."""
        with contextlib.suppress(OSError):
            own = {name.partition(".")[0] for name in os.listdir(f"{trial['bundle']}/files")}
            return bool(self._preloaded.names) and not own.isdisjoint(sys.modules)
        return False

    def _become_worker(self, is_current: int, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Be a worker as if its interpreter had been started by `argv`, and end as that would."""
        if not os.read(is_current, 1):
            execute(argv, env)
        coerced = {name: os.environ[name] for name in _SET_BY_PYTHON if name in os.environ}
        os.environ.clear()
        os.environ.update({**coerced, **self._preloaded.variables_with(env)})
        system.show_as(argv, {wire.TRIAL_VARIABLE: env[wire.TRIAL_VARIABLE]})
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python has it
        channel = int(argv[-1])
        os.closerange(_STREAMS, channel)
        os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
        sys.argv = list(argv[1:])
        self._renew()
        _run_and_end(argv[-2], channel)

    def _renew(self) -> None:
        """Do what each process would have done as it imported the modules itself."""
        for fd, name in enumerate(("stdout", "stderr"), 1):
            _open_anew(getattr(sys, name), fd, f"<{name}>")
        library_hooks.draw_anew()
        preloading.start(self._blas)
        for fd, printed in self._preloaded.printed.items():
            with contextlib.suppress(OSError):  # a full disk
                os.write(fd, printed)


def _open_anew(stream: io.TextIOWrapper, fd: int, name: str) -> None:
    """Have a stream be as if it was opened just now: it may be a pipe, and was none; others may hold it, too."""
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = name
    buffer = raw if stream.write_through else io.BufferedWriter(raw)
    by_line = stream.line_buffering
    at_once = stream.write_through
    io.TextIOWrapper.__init__(stream, buffer, stream.encoding, stream.errors, None, by_line, at_once)


def show_as(argv: Sequence[str]) -> None:
    """Be found as a process that serves a home, with this command."""
    system.show_as([sys.executable, *argv], {wire.MANAGER_VARIABLE: os.environ.get(wire.MANAGER_VARIABLE, "")})


def _receive(connection: socket.socket) -> Mapping[str, object]:
    connection.settimeout(_REQUEST_S)
    text = b""
    while not text.endswith(b"\n"):
        part = connection.recv(_PART_BYTES)
        if not part:
            raise EOFError("the request was cut off")
        text += part
    connection.setblocking(True)
    return fields.mapping(json.loads(text))


def _run_and_end(directory: str, channel: int) -> None:
    code = 0
    try:
        worker_main.main(directory, channel)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as at the end of any program
        traceback.print_exc()
        code = 1
    finally:
        _finalize()
        os._exit(code)


def _finalize() -> None:
    """Do what Python does at the end of a program, as `multiprocessing` does in forked processes."""
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - there is no other way
        atexit._run_exitfuncs()  # noqa: SLF001 - as above
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a full disk, or the cell has closed it
            stream.flush()
