"""The manager's main thread: wait for news, take a turn, and end after some idle time."""

from __future__ import annotations

import logging
import select
from concurrent.futures import ThreadPoolExecutor

from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.doorbell import Doorbell
from jupyter_autotrain.manager.leadership import Leadership
from jupyter_autotrain.manager.mailbox import Mailbox
from jupyter_autotrain.manager.manager import Manager

_THREADS = 32
_LOOK_S = 0.4  # a ring may be lost, and yet a submit is seen within a second; a look costs a tenth of a millisecond
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
        self._bell = Doorbell(context.home.doorbell)
        self._mailbox = Mailbox()
        self._manager = Manager(context, self._mailbox, ThreadPoolExecutor(_THREADS, thread_name_prefix="call"))
        self._seen_version = -1
        self._looked_s = 0.0

    def serve(self) -> None:
        """Work until nothing has been to do for `idle_s`.

        Raises:
            SystemExit: This is not the home's manager any more.
        """
        while True:
            self._bell.hang()
            self._leadership.announce(True)
            self._serve_until_idle()
            self._leadership.announce(False)
            self._bell.take_down()
            # Whoever rang before the bell was down has been heard by nobody else.
            self._manager.turn((), look=True)
            if self._manager.is_idle:
                return

    def _serve_until_idle(self) -> None:
        idle_since = self._context.clocks.tick_s()
        while True:
            self._turn()
            now = self._context.clocks.tick_s()
            if not self._manager.is_idle:
                idle_since = now
            elif now - idle_since >= self._idle_s:
                return
            self._wait(min(_LOOK_S, max(idle_since + self._idle_s - now, 0.0)))

    def _turn(self) -> None:
        self._leadership.keep()
        messages = self._bell.messages()
        self._bell.mend()
        self._manager.turn(messages, look=bool(messages) or self._store_changed())

    def _store_changed(self) -> bool:
        """Ask now and then, in case a ring was lost; a ring that is heard needs no asking."""
        now = self._context.clocks.tick_s()
        if now - self._looked_s < _LOOK_S and self._seen_version >= 0:
            return False
        self._looked_s = now
        version = self._context.retry_store(self._context.store.data_version)
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def _wait(self, timeout_s: float) -> None:
        bell = self._bell.fileno()
        ears = [self._mailbox.fileno()] if bell is None else [self._mailbox.fileno(), bell]
        select.select(ears, [], [], timeout_s)
