"""The program of a session's trial: requests go to a kernel and its answers to the stream, until the session ends."""

from __future__ import annotations

import os
import signal
import sys
import time

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.session.gpu_turns import GpuTurns
from jupyter_autotrain.agent.session.jupyter_kernel import start_kernel
from jupyter_autotrain.agent.session.messages import SESSION, Frames, Message, Requests, message
from jupyter_autotrain.agent.session.terminals import Terminals

_LEAST_PAUSE_S = 0.002
_MOST_PAUSE_S = 0.05  # between two looks for requests
_TERMINAL_PAUSE_S = 0.01  # where a shell may print at any time
_SHARE = 0.05  # of the time since the last message that a look may come late


def serve(idle_s: float = 0.0, warn_s: float = 600.0, *, shares_gpus: bool = False) -> None:
    """Serve a session until it is closed, stopped, or idle for too long.

    Args:
        idle_s: Seconds without a running cell or a request after which it ends; 0: never.
        warn_s: How long before that it is told.
        shares_gpus: Whether it has its GPUs only while a cell runs.

    Raises:
        RuntimeError: This is no trial, or the kernel does not start.
    """
    context = api.context()
    if context is None:
        raise RuntimeError("a session runs in a trial")
    _Session(context, _Idle(idle_s, warn_s), GpuTurns(context) if shares_gpus else None).run()


class _Idle:
    """The time that no cell has been asked for; its end comes after a warning."""

    def __init__(self, limit_s: float, warn_s: float) -> None:
        self._limit_s = limit_s
        self._warn_s = min(warn_s, limit_s / 2)
        self.reset()

    def reset(self) -> None:
        """Begin to count anew."""
        self._since_s = time.monotonic()
        self._warned_s: float | None = None

    @property
    def seconds(self) -> float:
        """Its length by now."""
        return time.monotonic() - self._since_s

    @property
    def is_over(self) -> bool:
        """True when the warning was of no use."""
        return self._warned_s is not None and time.monotonic() - self._warned_s >= self._warn_s

    def warning(self) -> str:
        """Return the warning that is due; "" when there is none or it was given."""
        if self._limit_s <= 0.0 or self._warned_s is not None or self.seconds < self._limit_s - self._warn_s:
            return ""
        self._warned_s = time.monotonic()
        left = _duration(self._warn_s)
        return f"the session has been idle for {_duration(self.seconds)} and ends in {left}: run a cell to keep it"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


class _TerminatedError(Exception):
    """SIGTERM has come."""


class _Session:
    def __init__(self, context: api.TrialContext, idle: _Idle, turns: GpuTurns | None) -> None:
        self._context = context
        self._idle = idle
        self._turns = turns
        self._requests = Requests(context.directory)
        self._frames = Frames(context.directory)
        self._terminals = Terminals()
        self._kernel = start_kernel(context.directory)
        self._busy = False  # while a cell runs
        self._heard_s = time.monotonic()
        self._end = ""

    def run(self) -> None:
        """Go on until the session ends; the kernel's sockets are removed also where SIGTERM ends it."""
        signal.signal(signal.SIGTERM, self._terminate)
        try:
            self._serve()
        except _TerminatedError:
            self._kernel.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    def _terminate(self, _number: int, _frame: object) -> None:
        if not os.path.exists(f"{self._context.directory}/{wire.STOP_FILE}"):  # else it ends in its own time
            raise _TerminatedError

    def _serve(self) -> None:
        self._tell("ready", {})
        self._idle.reset()
        while not self._end:
            for request in self._requests.take():
                self._heard_s = time.monotonic()
                self._take(request)
            for said in self._kernel.receive(self._pause_s()):
                self._heard_s = time.monotonic()
                self._pass_on(said)
            for said in self._terminals.said():
                self._heard_s = time.monotonic()
                self._idle.reset()
                self._frames.write(said)
            self._follow_turns()
            self._look()
        self._tell("closed", {"reason": self._end})
        self._kernel.close()

    def _pause_s(self) -> float:
        quiet_s = time.monotonic() - self._heard_s
        most_s = _TERMINAL_PAUSE_S if self._terminals else _MOST_PAUSE_S
        return min(most_s, _LEAST_PAUSE_S + quiet_s * _SHARE)

    def _take(self, request: Message) -> None:
        kind = request["msg_type"]
        if request["channel"] == SESSION:
            if kind == "close":
                self._end = "closed"
            elif kind == "restart":
                self._restart("asked for")
            else:
                self._terminals.take(request)
        elif kind == "interrupt_request":
            self._kernel.interrupt()
            reply = message("control", "interrupt_reply", {"status": "ok"}, request)
            self._frames.write(reply)
        else:
            is_cell = kind == "execute_request"
            if is_cell:
                self._idle.reset()
            for one in self._turns.take(request) if is_cell and self._turns else [request]:
                self._kernel.send(one)

    def _follow_turns(self) -> None:
        if self._turns is None:
            return
        for request in self._turns.due():
            self._kernel.send(request)
        if notice := self._turns.notice():
            self._frames.write(notice)
        if self._turns.is_waiting:
            self._idle.reset()

    def _pass_on(self, said: Message) -> None:
        content = said["content"]
        if self._turns is not None:
            self._turns.heard(said)
        if said["header"]["msg_type"] == "status":
            is_cell = said["parent_header"].get("msg_type") == "execute_request"
            self._busy = is_cell and content.get("execution_state") == "busy"
        elif said["header"]["msg_type"] == "stream":  # the trial's log has it too
            log = sys.stderr if content.get("name") == "stderr" else sys.stdout
            log.write(str(content.get("text", "")))
            log.flush()
        self._frames.write(said)

    def _look(self) -> None:
        """See whether the session has to end, or its kernel has."""
        if self._context.should_stop():
            self._end = self._context.stop_reason()
        elif ended := self._kernel.ended:
            self._restart(ended)
        elif self._busy:
            self._idle.reset()
        elif self._idle.is_over:
            self._end = f"idle for {_duration(self._idle.seconds)}"
            self._context.reporter.note("info", f"the session has ended: {self._end}")
        elif warning := self._idle.warning():
            self._context.reporter.note("warning", warning)
            self._tell("warning", {"text": warning})

    def _restart(self, why: str) -> None:
        """Begin a new kernel; all that the old one held is gone."""
        self._kernel.close()
        self._busy = False
        if self._turns is not None:
            self._turns.restarted()
        self._context.reporter.note("warning", f"the session's kernel was restarted ({why}); its variables are gone")
        self._kernel = start_kernel(self._context.directory)
        self._tell("restarted", {"reason": why})

    def _tell(self, kind: str, content: dict[str, object]) -> None:
        self._frames.write(message(SESSION, kind, content))
