"""`hold: training`: a session has its GPUs only while its cells run.

Cells wait until the manager has said that the GPUs are the session's (`control/gpus`: the number of the turn). A moment
after the last cell all tensors are moved to the host's memory, and the GPUs are said to be free. What stays on a GPU is
the context of CUDA, some hundred megabytes.
"""

from __future__ import annotations

import time
from collections import deque

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.ranks.api import TrialContext
from jupyter_autotrain.agent.session.messages import SESSION, Message, message

_LINGER_S = 1.0  # cells that follow each other share a turn
_SAY_AGAIN_S = 10.0  # a manager that has begun since does not know
_TELL_AFTER_S = 2.0
_IMPORT = "from jupyter_autotrain.agent.session import offload as _o"
_AWAY = f"{_IMPORT}\n__autotrain_moved__ = _o.away()\ndel _o"
_BACK = f"{_IMPORT}\n_o.back(globals().pop('__autotrain_moved__', []))\ndel _o"


class GpuTurns:
    """The turns of a session.

    Args:
        context: The trial.
    """

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._number = 0  # of the turn
        self._state = "free"  # then: wanted, held, leaving
        self._waiting: deque[Message] = deque()
        self._running: set[str] = set()
        self._since_s = time.monotonic()
        self._told = False
        self._say(wanted=False)

    def take(self, request: Message) -> list[Message]:
        """Take a cell; gives what is sent to the kernel now."""
        if self._state == "held":
            self._running.add(request["header"]["msg_id"])
            return [request]
        self._waiting.append(request)
        return []

    def heard(self, said: Message) -> None:
        """Follow the ends of cells."""
        if said["header"]["msg_type"] == "execute_reply":
            self._running.discard(said["parent_header"].get("msg_id", ""))
            if not self._running:
                self._since_s = time.monotonic()

    def restarted(self) -> None:
        """Follow a new kernel, which has nothing on the GPUs."""
        self._running.clear()

    @property
    def is_waiting(self) -> bool:
        """True while a cell waits for its turn."""
        return bool(self._waiting)

    def due(self) -> list[Message]:
        """Return what is sent to the kernel now: cells whose turn has come, or the end of a turn."""
        if self._state == "free" and self._waiting:
            self._number += 1
            self._enter("wanted")
            self._say(wanted=True)
        elif self._state == "wanted" and self._is_given():
            self._enter("held")
            return self._begin()
        elif self._state == "held" and not self._running and self._quiet_s >= _LINGER_S:
            self._enter("leaving")
            return [self._call(_AWAY)]
        elif self._state == "leaving" and not self._running:
            self._enter("free")
            self._say(wanted=False)
        elif self._state in {"free", "wanted"} and time.monotonic() - self._said_s >= _SAY_AGAIN_S:
            self._say(wanted=self._state == "wanted")
        return []

    def notice(self) -> Message | None:
        """Return what a front end is told where a cell waits, once for each turn."""
        if self._state != "wanted" or self._told or self._quiet_s < _TELL_AFTER_S:
            return None
        self._told = True
        return message(
            SESSION, "warning", {"text": "the cell waits for the session's GPUs: `%autotrain why` says for whom"}
        )

    @property
    def _quiet_s(self) -> float:
        return time.monotonic() - self._since_s

    def _enter(self, state: str) -> None:
        self._state = state
        self._since_s = time.monotonic()
        self._told = False

    def _begin(self) -> list[Message]:
        sent = [self._call(_BACK), *self._waiting]
        self._running.update(one["header"]["msg_id"] for one in self._waiting)
        self._waiting.clear()
        return sent

    def _call(self, code: str) -> Message:
        content = {"code": code, "silent": True, "store_history": False, "allow_stdin": False}
        request = message("shell", "execute_request", {**content, "user_expressions": {}, "stop_on_error": False})
        self._running.add(request["header"]["msg_id"])
        return request

    def _is_given(self) -> bool:
        try:
            return int(files.read(self._context.directory, wire.GPUS_FILE, 20)) >= self._number
        except (OSError, ValueError):
            return False

    def _say(self, *, wanted: bool) -> None:
        self._said_s = time.monotonic()
        self._context.reporter.ask_for_gpus(self._number, wanted=wanted)
