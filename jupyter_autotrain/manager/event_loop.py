"""The manager's main thread: wait for events, take a step, and end after some idle time."""

from __future__ import annotations

import logging
import select
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from jupyter_autotrain.manager.contact import WakeupSocket
from jupyter_autotrain.manager.context import ManagerContext, Threads
from jupyter_autotrain.manager.jobs.events import EventQueue
from jupyter_autotrain.manager.leadership import Leadership
from jupyter_autotrain.manager.manager import Manager

_THREADS = 32  # of one backend; made when they are needed
_MOVES = 2  # at the same time: they share one link
_STORE_CHECK_S = 0.4  # a message may be lost, yet a submit is seen within a second; asking costs 0.1 ms
_log = logging.getLogger(__name__)


class EventLoop:
    """Serves one home.

    Args:
        context: The home.
        idle_s: How long to stay when nothing is to be done.
        leadership: What makes this process the home's manager.
    """

    def __init__(self, context: ManagerContext, idle_s: float, leadership: Leadership) -> None:
        self._context = context
        self._idle_s = idle_s
        self._leadership = leadership
        self._socket = WakeupSocket(context.home.wakeup_socket)
        self._event_queue = EventQueue()
        threads = Threads(
            partial(ThreadPoolExecutor, _THREADS, thread_name_prefix="call"),
            ThreadPoolExecutor(_MOVES, thread_name_prefix="move"),
        )
        self._manager = Manager(context, self._event_queue, threads)
        self._seen_version = -1
        self._checked_s = 0.0

    def serve(self) -> None:
        """Work until nothing has been to do for `idle_s`.

        Raises:
            SystemExit: This is not the home's manager any more, or a newer version shall be.
        """
        while True:
            self._socket.open()
            self._leadership.publish_identity(True)
            self._serve_until_idle()
            self._leadership.publish_identity(False)
            self._socket.close()
            # A message sent right before the socket was closed may not have been read yet: one more step.
            self._manager.step((), read_store=True)
            if self._manager.is_idle:
                return

    def _serve_until_idle(self) -> None:
        idle_since = self._context.clocks.tick_s()
        while True:
            self._step()
            now = self._context.clocks.tick_s()
            if not self._manager.is_idle:
                idle_since = now
            elif now - idle_since >= self._idle_s:
                return
            self._wait(min(_STORE_CHECK_S, max(idle_since + self._idle_s - now, 0.0)))

    def _step(self) -> None:
        self._leadership.renew()
        messages = self._socket.messages()
        self._socket.reopen_if_deleted()
        if self._socket.newer_version:
            raise SystemExit(f"version {self._socket.newer_version} takes over")
        self._manager.step(messages, read_store=bool(messages) or self._store_changed())

    def _store_changed(self) -> bool:
        """Ask now and then, in case a message was lost; one that arrives needs no asking."""
        now = self._context.clocks.tick_s()
        if now - self._checked_s < _STORE_CHECK_S and self._seen_version >= 0:
            return False
        self._checked_s = now
        version = self._context.retry_store(self._context.store.data_version)
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def _wait(self, timeout_s: float) -> None:
        socket = self._socket.fileno()
        readable = [self._event_queue.fileno()]
        if socket is not None:
            readable.append(socket)
        select.select(readable, [], [], timeout_s)
