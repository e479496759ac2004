"""One worker of a trial whose ranks a launcher starts, as the supervisor sees it by what the rank tells."""

from __future__ import annotations

import os
import re
import time

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import exit_causes, fields
from jupyter_autotrain.worker.event_waiter import EventWaiter
from jupyter_autotrain.worker.exit_causes import WorkerEnd
from jupyter_autotrain.worker.rank_channel import RankChannel
from jupyter_autotrain.worker.worker_process import exit_json

_ABORT = re.compile(r"Abort\((\d+)\) on node \d+ \(rank ")  # MPICH and Intel MPI; the number may be a large one


class LaunchedWorker:
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
        self.process: object = None
        self.exit_status: int | None = None
        self.was_terminated = False
        self._channel = RankChannel(os.getcwd(), local_rank)
        self._outcome: dict[str, object] = {}
        self._ended_s = 0.0
        event_waiter.add(self._channel.fd)

    @property
    def is_running(self) -> bool:
        """True from its start until its end has been told."""
        return self.process is not None and self.exit_status is None

    def pump(self) -> bool:
        """Take what the rank has told; True when something is new."""
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
        """Take what is left, once all is ended.

        Where a rank aborts, mpiexec may kill what would tell of its end; then its own last words do.
        """
        self.pump()
        if self.exit_status is None:
            last = exit_causes.last_line(wire.stream_of_rank(wire.STDERR, self.rank))
            if aborted := _ABORT.match(last):
                self._take({"exit_status": (int(aborted[1]) & 255 or 1) << 8})

    def end(self) -> WorkerEnd | None:
        """What is known of its end; None when it was ended from outside before it had an outcome, or never began."""
        if self.exit_status is None:
            return None
        code = os.waitstatus_to_exitcode(self.exit_status)
        if self.was_terminated:
            if not self._outcome:
                return None
            code = 1 if code < 0 else code
        return WorkerEnd(self.rank, code, True, self._outcome, self._ended_s)

    def to_json(self) -> dict[str, object]:
        """Its row of `workers` in the status file."""
        return {"rank": self.rank, "process": self.process, **self.exit_json()}

    def exit_json(self) -> dict[str, object]:
        """Exit code and signal as the status file has them; both null while it runs."""
        return exit_json(self.exit_status)
