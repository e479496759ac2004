"""One worker (rank) of a trial, as its supervisor sees it: started, watched, ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import system
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.worker import event_waiter, outcome
from jupyter_autotrain.worker.exit_causes import WorkerEnd, cannot_start
from jupyter_autotrain.worker.streams import OutputStreams

_CANNOT_START = 127  # as shells exit when a command cannot be run


class Worker:
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
        self.process: list[int | float | str] | None = None  # its identity as JSON
        self.exit_status: int | None = None  # as waitpid gives it
        self.ended_s = 0.0  # on the clock of `time.monotonic`, when the supervisor saw it
        self.was_terminated = False  # by the supervisor, before it ended by itself
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
        self, argv: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None] = lambda: None
    ) -> None:
        """Start it: `argv` with the descriptor of its outcome as last argument, under the trial's limits."""
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                system.die_with_parent(supervisor)
                self._exec(argv, env, apply_limits)
            finally:
                os._exit(_CANNOT_START)
        with contextlib.suppress(OSError):  # no descriptor left: the status goes without it
            self.process = ProcessIdentity.of(self.pid).to_json()
        self.streams.parent_side()

    def _exec(self, argv: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        os.setsid()
        apply_limits()
        self.streams.child_side()
        event_waiter.reset_signals()
        os.set_inheritable(self.outcome, True)
        try:
            os.execve(argv[0], [*argv, str(self.outcome)], env)  # noqa: S606 - it becomes the user's interpreter
        except OSError as error:
            outcome.write(self.outcome, cannot_start(argv[0], error))

    def reaped(self, exit_status: int) -> None:
        """Keep how it ended."""
        self.exit_status = exit_status
        self.ended_s = time.monotonic()

    def end(self) -> WorkerEnd | None:
        """What is known of its end; None when the supervisor had to end it before it wrote an outcome."""
        begun, found = outcome.read(self.outcome)
        code = os.waitstatus_to_exitcode(self.exit_status or 0)
        if self.was_terminated:
            if not found:
                return None
            code = 1 if code < 0 else code  # it was about to exit
        return WorkerEnd(self.rank, code, begun, found, self.ended_s)

    def to_json(self) -> dict[str, object]:
        """Its row of `workers` in the status file."""
        return {"rank": self.rank, "process": self.process, **self.exit_json()}

    def exit_json(self) -> dict[str, object]:
        """Exit code and signal as the status file has them; both null while it runs."""
        return exit_json(self.exit_status)

    def pump(self) -> bool:
        """Pass on what it has printed so far; False: nothing of its state is new."""
        self.streams.pump()
        return False

    def finish(self) -> None:
        """Pass on what is left of its output, once all is ended."""
        self.streams.finish()


def exit_json(exit_status: int | None) -> dict[str, object]:
    """Exit code and signal of a worker as the status file has them; both null without a status."""
    if exit_status is None:
        return {"exit_code": None, "signal": None}
    code = os.waitstatus_to_exitcode(exit_status)
    return {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}
