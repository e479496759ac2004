"""The workers (ranks) of a trial as its supervisor sees them: its own child, or a process that a launcher starts."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent import fields, system, wire
from jupyter_autotrain.agent.launchers.rank_channel import RankChannel
from jupyter_autotrain.agent.supervisor import exit_causes
from jupyter_autotrain.agent.supervisor.exit_causes import WorkerEnd, cannot_start
from jupyter_autotrain.agent.supervisor.streams import EventWaiter, OutputStreams, reset_signals
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import outcome

_CANNOT_START = 127  # as shells exit when a command cannot be run
Become = Callable[[Sequence[str], Mapping[str, str]], object]  # what a process becomes, by command and variables
_ABORT = re.compile(r"Abort\((\d+)\) on node \d+ \(rank ")  # MPICH and Intel MPI; the number may be a large one


def execute(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Become a program."""
    os.execve(argv[0], list(argv), env)  # noqa: S606 - it becomes the user's interpreter


class WorkerRow:
    """The part of a worker that the status file has."""

    rank: int
    process: object = None  # its identity as JSON
    exit_status: int | None = None  # as waitpid gives it
    was_terminated = False  # by the supervisor, before it ended by itself

    def to_json(self) -> dict[str, object]:
        """Return its row of `workers` in the status file."""
        return {"rank": self.rank, "process": self.process, **self.exit_json()}

    def exit_json(self) -> dict[str, object]:
        """Return the exit code and signal as the status file has them; both null while it runs."""
        return exit_json(self.exit_status)


class Worker(WorkerRow):
    """One process of a trial, in a session of its own, with streams and an outcome of its own.

    Args:
        rank: Its rank among the workers of the trial.
        local_rank: Its rank among those on this node.
        streams: Where its output goes.
    """

    def __init__(self, rank: int, local_rank: int, streams: OutputStreams) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.streams = streams
        self.pid = 0
        self.ended_s = 0.0  # on the clock of `time.monotonic`, when the supervisor saw it
        self.outcome = outcome.open_channel()

    @property
    def is_running(self) -> bool:
        """True from its start until it is reaped."""
        return self.pid != 0 and self.exit_status is None

    @property
    def has_begun(self) -> bool:
        """True when its interpreter has come up."""
        return outcome.read(self.outcome)[0]

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None] = lambda: None,
        become: Become = execute,
    ) -> None:  # fmt: skip
        """Start it: `argv` with the descriptor of its outcome as last argument, under the trial's limits."""
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                system.die_with_parent(supervisor)
                self._become([*argv, str(self.outcome)], env, apply_limits, become)
            finally:
                os._exit(_CANNOT_START)
        with contextlib.suppress(OSError):  # no descriptor left: the status goes without it
            self.process = ProcessIdentity.of(self.pid).to_json()
        self.streams.parent_side()

    def _become(
        self, argv: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None], become: Become
    ) -> None:
        os.setsid()
        apply_limits()
        self.streams.child_side()
        reset_signals()
        os.set_inheritable(self.outcome, True)
        try:
            become(argv, env)
        except OSError as error:
            outcome.write(self.outcome, cannot_start(argv[0], error))

    def reaped(self, exit_status: int) -> None:
        """Keep its exit status, and the time."""
        self.exit_status = exit_status
        self.ended_s = time.monotonic()

    def end(self) -> WorkerEnd | None:
        """Return its end as far as it is known; None when the supervisor had to end it before it wrote an outcome."""
        begun, found = outcome.read(self.outcome)
        code = os.waitstatus_to_exitcode(self.exit_status or 0)
        if self.was_terminated:
            if not found:
                return None
            code = 1 if code < 0 else code  # it was about to exit
        return WorkerEnd(self.rank, code, begun, found, self.ended_s)

    def pump(self) -> bool:
        """Pass on its output so far; return False, as nothing of its state is new."""
        self.streams.pump()
        return False

    def finish(self) -> None:
        """Pass on the rest of its output, once all is ended."""
        self.streams.finish()


def exit_json(exit_status: int | None) -> dict[str, object]:
    """Return the exit code and signal of a worker as the status file has them; both null without a status."""
    if exit_status is None:
        return {"exit_code": None, "signal": None}
    code = os.waitstatus_to_exitcode(exit_status)
    return {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}


class LaunchedWorker(WorkerRow):
    """A worker that a launcher starts, and starts again.

    Args:
        rank: Its rank among the workers of the trial.
        local_rank: Its rank among those on this node.
        event_waiter: What the supervisor waits on.
    """

    pid = 0  # it is no child of the supervisor

    def __init__(self, rank: int, local_rank: int, event_waiter: EventWaiter) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self._channel = RankChannel(os.getcwd(), local_rank)
        self._outcome: dict[str, object] = {}
        self._ended_s = 0.0
        event_waiter.add(self._channel.fd)

    @property
    def is_running(self) -> bool:
        """True from its start until its end has been told."""
        return self.process is not None and self.exit_status is None

    def pump(self) -> bool:
        """Take the messages of the rank; return True when something is new."""
        messages = self._channel.read()
        for message in messages:
            self._take(message)
        return bool(messages)

    def _take(self, message: dict[str, object]) -> None:
        status = message.get("exit_status")
        if not isinstance(status, int):
            self.process = message.get("process")
            self.exit_status = None
            self.was_terminated = False
            return
        self.exit_status = status
        self.was_terminated = self.was_terminated or message.get("terminated") is True
        self._outcome = fields.mapping(message.get("outcome"))
        self._ended_s = time.monotonic()

    def finish(self) -> None:
        """Take the messages that are left, once all is ended.

        Where a rank aborts, mpiexec may kill the process that would tell of its end; then its own last words do.
        """
        self.pump()
        if self.exit_status is None:
            last = exit_causes.last_line(wire.stream_of_rank(wire.STDERR, self.rank))
            if aborted := _ABORT.match(last):
                self._take({"exit_status": (int(aborted[1]) & 255 or 1) << 8})

    def end(self) -> WorkerEnd | None:
        """Return its end as far as it is known.

        The end is None when it was ended from outside before it had an outcome, or never began.
        """
        if self.exit_status is None:
            return None
        code = os.waitstatus_to_exitcode(self.exit_status)
        if self.was_terminated:
            if not self._outcome:
                return None
            code = 1 if code < 0 else code
        return WorkerEnd(self.rank, code, True, self._outcome, self._ended_s)
