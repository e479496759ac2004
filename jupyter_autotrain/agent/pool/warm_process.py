"""A warm process: it goes on from trial to trial, and each begins in processes that are forked from it.

```
WARM/lock           held by who starts or removes a warm process
     DIGEST/needs   {"python", "imports"}: what its trials have in common; the digest is also of their variables
            socket  where it takes trials (mode 0600); see `forked_trial`
            lock    held while it lives, with its identity; written to with each trial
            loaded  {"imports", "left_out": {import: why}}, once it has imported
```

It begins with nothing but this code, and serves at once: the first trial imports for itself. When that has ended, or
another one comes, a copy of it makes the imports and then takes its place; where one of them has effects that must not
be shared (`import_process`), another copy leaves that to the trials. Nothing of a trial ever runs in either. A trial
needs it only to begin: it goes on where the warm process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib  # noqa: F401 - cells use it, and Python 3.14 starts without it
import signal
import socket
import sys
import time
import traceback
from typing import NoReturn

from jupyter_autotrain.agent import fields, files, locks, wire
from jupyter_autotrain.agent.pool import import_process, preloading, warm_list
from jupyter_autotrain.agent.pool.forked_trial import ForkedTrials, show_as
from jupyter_autotrain.agent.pool.import_process import ImportProcess, Teller
from jupyter_autotrain.agent.pool.needed_imports import LoadedFiles
from jupyter_autotrain.agent.pool.preloading import Preloaded, UnsuitableError
from jupyter_autotrain.agent.supervisor import streams
from jupyter_autotrain.agent.supervisor.streams import EventWaiter
from jupyter_autotrain.agent.system import process_identity
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import trial_lock

_CODE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_LOOK_AFTER_S = 2.0  # whether its folder is still there
_LOOK_AGAIN_S = 0.001
_MOST_WAITING = 512
_STREAMS = 3
_TRIALS_BEFORE_IMPORTS = 2


class WarmProcess:
    """The loop of a warm process, in its folder.

    Args:
        listener: Its socket.
        lock: Its lock file, open and locked.
        idle_s: How long it waits for another trial before it ends.
        limit_bytes: How much memory all warm processes beside it may hold together.
        imports: What a copy of it is to import, as `needed_imports` gives it.
    """

    def __init__(self, listener: socket.socket, lock: int, idle_s: float, limit_bytes: int, imports: list[str]) -> None:
        self._listener = listener
        self._lock = lock
        self._idle_s = idle_s
        self._limit_bytes = limit_bytes
        self._imports, self._left_out = preloading.sort_out(imports)
        self._importer: ImportProcess | None = None
        self._running = set[int]()
        self._begun = 0
        self._is_outdated = False
        self._used_s = time.monotonic()
        self._begin(Preloaded())

    def _begin(self, preloaded: Preloaded) -> None:
        """Serve with these imports from now on."""
        self._forked = ForkedTrials(preloaded)
        self._events = EventWaiter()
        self._events.add(self._listener.fileno())
        trial_lock.write_owner(self._lock, ProcessIdentity.of(os.getpid()), [])
        self._loaded_files = LoadedFiles()
        told = {"imports": preloaded.names, "left_out": self._left_out}
        wire.write_atomically("loaded", json.dumps(told).encode(), sync=False)

    def run(self) -> None:
        """Take trials until it is to end."""
        while self._goes_on():
            if self._is_time_to_import():
                self._import()
            is_asked = self._events.wait(_LOOK_AFTER_S)
            self._reap()
            self._follow_imports()
            while is_asked and self._is_fit() and self._take():
                pass
        if self._importer is not None:
            self._importer.end()

    def _goes_on(self) -> bool:
        """Tell whether it is to wait for another trial."""
        is_idle = not self._running and time.monotonic() - self._used_s > self._idle_s
        return not is_idle and not self._events.got_sigterm and os.path.exists("socket") and not self._is_outdated

    def _is_fit(self) -> bool:
        """Tell whether a trial may be forked; where not, it is asked for again, of the process that comes next."""
        if process_identity.has_threads() or import_process.has_cuda():
            self._is_outdated = True
        return not self._is_outdated

    def _take(self) -> bool:
        """Begin a trial; return False when none waits.

        A look at the files of PyTorch takes 5 ms, in which its supervisor comes up: the worker is told of it.
        """
        try:
            connection, _ = self._listener.accept()
            reader, writer = os.pipe()
        except OSError:  # none waits, or it has no more descriptors for now
            return False
        with connection:
            pid = os.fork()
            if pid == 0:
                os.close(writer)
                self._become_trial(connection, reader)
        self._is_outdated = not self._loaded_files.are_current()
        os.write(writer, b"" if self._is_outdated else b"1")
        os.close(writer)
        os.close(reader)  # only now: a pipe that nobody reads would end this process
        self._running.add(pid)
        self._begun += 1
        self._used_s = time.monotonic()
        os.utime(self._lock)
        return True

    def _become_trial(self, connection: socket.socket, is_current: int) -> NoReturn:
        try:
            streams.reset_signals()
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # whoever asked for the trial may be killed meanwhile
            os.close(self._lock)
            self._listener.close()
            self._forked.run(connection, is_current)
        except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on as a second warm one
            traceback.print_exc()
        finally:
            os._exit(0)

    def _reap(self) -> None:
        for pid in list(self._running):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._running.discard(pid)
                self._used_s = time.monotonic()

    def _is_time_to_import(self) -> bool:
        if self._importer is not None or not self._imports:
            return False
        return self._begun >= _TRIALS_BEFORE_IMPORTS or (self._begun > 0 and not self._running)

    def _import(self) -> None:
        """Have a copy make the imports; return in that, too, when it has taken this process's place."""
        reader, writer = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(writer)
            self._importer = ImportProcess(pid, reader)
            self._events.add(reader)
            return
        os.close(reader)
        streams.reset_signals()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # its parent may be killed meanwhile
        self._running.clear()
        teller = Teller(writer)
        try:
            preloaded = preloading.load(self._imports, teller.begin, self._limit_bytes)
        except UnsuitableError as error:
            teller.unsuitable(str(error))
            os._exit(0)
        teller.ready()
        while os.getppid() == parent:
            time.sleep(_LOOK_AGAIN_S)  # it has still taken a trial
        self._imports = []
        self._used_s = time.monotonic()
        self._begin(preloaded)
        warm_list.keep_within("..", self._limit_bytes, os.getpid())

    def _follow_imports(self) -> None:
        """Leave to the trials what cannot be imported for all; end when the copy has taken this place."""
        importer = self._importer
        if importer is None or not importer.has_ended():
            return
        if importer.is_ready:
            os._exit(0)
        os.waitpid(importer.pid, 0)
        self._events.remove(importer.fd)
        os.close(importer.fd)
        self._importer = None
        top = _top(importer.name)
        self._left_out[top] = importer.fault
        self._imports = [name for name in self._imports if _top(name) != top]
        self._begin(Preloaded())


def _top(name: str) -> str:
    return name.partition(":")[0].partition(".")[0]


def main(folder: str, idle_s: float, limit_bytes: int) -> None:
    """Be the warm process of a folder, in the background; the starter exits once trials are taken."""
    os.umask(0o077)
    os.chdir(folder)
    lock = trial_lock.acquire()
    if lock is None:  # there is one
        os._exit(0)
    listener = _listen()
    show_as(sys.argv[:3])
    if os.fork():
        os._exit(0)
    os.setsid()
    _detach_streams()
    _held = locks.use(_CODE)  # a host removes code that nobody uses
    needs = fields.mapping(files.read_json(".", "needs"))
    WarmProcess(listener, lock, idle_s, limit_bytes, fields.strings(needs.get("imports"))).run()
    _leave(folder)
    os._exit(0)  # what was imported is not finalized: the trials that it began go on


def _listen() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("socket")  # of one that was killed
    listener.bind("socket")
    listener.listen(_MOST_WAITING)
    listener.setblocking(False)
    return listener


def _detach_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(_STREAMS):
        os.dup2(null, fd)
    os.close(null)


def _leave(folder: str) -> None:
    """Remove its folder, in which it is; one that was removed before may be another's by now."""
    with contextlib.suppress(OSError), locks.alone("../lock"):
        for name in os.listdir("."):
            os.unlink(name)
        os.rmdir(folder)
