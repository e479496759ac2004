"""The first process of a container. It runs the worker, and ends with it or when its starter is gone."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from jupyter_autotrain.agent.environments import image
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.trial import outcome, termination_causes, trial_file

_GRACE_S = 5.0
_OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class Container:
    """The processes of this container.

    Args:
        directory: The trial directory.
        channel: The descriptor of the worker's outcome.
        forwards: True when the supervisor cannot signal processes in here, so that SIGTERM is passed on to them.
    """

    def __init__(self, directory: str, channel: int, *, forwards: bool) -> None:
        self._directory = directory
        self._channel = channel
        self._forwards = forwards
        self._was_terminated = False
        self._deadline_s = 0.0
        self._wake_up, writer = os.pipe()
        for end in (self._wake_up, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)
        self._worker = self._start()

    def _start(self) -> int:
        worker = os.fork()
        if worker == 0:
            self._become_worker()
        return worker

    def _become_worker(self) -> None:
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if not self._forwards:
            for output, fd in enumerate(image.OUTPUT_FDS, 1):
                os.dup2(fd, output)
                os.close(fd)
        os.set_inheritable(self._channel, True)
        argv = [sys.executable, *program("worker"), self._directory, str(self._channel)]
        os.execv(argv[0], argv)  # noqa: S606 - it becomes the worker

    def run(self) -> int:
        """Wait for the worker's end, and return its exit code: 128 and more for a signal."""
        while True:
            status = self._reap()
            if status is not None:
                return self._exit_code(status)
            if self._deadline_s and time.monotonic() > self._deadline_s:
                return 128 + signal.SIGKILL
            watched = [self._wake_up] if self._deadline_s else [self._wake_up, sys.stdin.fileno()]
            for fd in select.select(watched, [], [], 1.0)[0]:
                if not os.read(fd, 4096) and not self._deadline_s:
                    self._end()

    def _terminated(self, *_: object) -> None:
        if self._forwards and not self._was_terminated:
            _signal_all(signal.SIGTERM)
        self._was_terminated = True

    def _end(self) -> None:
        """End everything, as the process that started this container is gone."""
        self._deadline_s = time.monotonic() + _GRACE_S
        if not self._was_terminated:  # a process gets one SIGTERM, as from the supervisor
            _signal_all(signal.SIGTERM)

    def _reap(self) -> int | None:
        """Return the worker's wait status; None while it runs. Adopted orphans are reaped as well."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == self._worker:
                return status
            if pid == 0:
                return None

    def _exit_code(self, status: int) -> int:
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL and _was_out_of_memory():
            self._write_out_of_memory()
            return 1
        return code if code >= 0 else 128 - code

    def _write_out_of_memory(self) -> None:
        cause = termination_causes.out_of_memory(trial_file.read(self._directory), 0)
        outcome.write(self._channel, {"state": cause.state, "reason": cause.reason, "kind": cause.kind})


def _signal_all(number: int) -> None:
    """Signal every process of the container but this one."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return


def _was_out_of_memory() -> bool:
    """Tell whether the kernel has killed a process of this container for its memory."""
    for path in _OOM_FILES:
        try:
            with open(path, encoding="ascii") as file:
                lines = [line.split() for line in file]
        except OSError:
            continue
        return any(words[:1] == ["oom_kill"] and words[-1] != "0" for words in lines)
    return False


def main(directory: str, outcome_file: str, forwards: str) -> None:
    """Run the worker of a trial in this container, then end the process."""
    channel = os.open(outcome_file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os._exit(Container(directory, channel, forwards=forwards == "forward").run())
