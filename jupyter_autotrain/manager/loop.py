"""The manager's main thread: wait for news, take a turn, and end after some idle time."""

from __future__ import annotations

import logging
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from jupyter_autotrain.manager.doorbell import Doorbell
from jupyter_autotrain.manager.house import House
from jupyter_autotrain.manager.mailbox import Mailbox
from jupyter_autotrain.manager.manager import Manager

_THREADS = 32
_TIMERS_S, _LOOK_S, _IDLE_S, _NO_BELL_S = 0.5, 1.0, 60.0, 0.2
_log = logging.getLogger(__name__)


class Loop:
    """Serves one home.

    Args:
        house: The home.
        idle_s: How long to stay when nothing is to be done.
        announce: Called with True when the doorbell hangs, with False before it is taken down.
    """

    def __init__(self, house: House, idle_s: float, announce: Callable[[bool], None]) -> None:
        self._house, self._idle_s, self._announce = house, idle_s, announce
        self._bell, self._mailbox = Doorbell(house.home.doorbell), Mailbox()
        self._manager = Manager(house, self._mailbox, ThreadPoolExecutor(_THREADS, thread_name_prefix="call"))
        self._seen_version, self._looked_s = -1, 0.0

    def serve(self) -> None:
        """Work until nothing has been to do for `idle_s`."""
        while True:
            self._bell.hang()
            self._announce(True)
            self._serve_until_idle()
            self._announce(False)
            self._bell.take_down()
            # Whoever rang before the bell was down has been heard by nobody else.
            self._manager.turn((), look=True)
            if self._manager.is_idle:
                return

    def _serve_until_idle(self) -> None:
        idle_since = self._house.clocks.tick_s()
        while True:
            self._turn()
            now = self._house.clocks.tick_s()
            if not self._manager.is_idle:
                idle_since = now
            elif now - idle_since >= self._idle_s:
                return
            self._wait(min(_IDLE_S, max(idle_since + self._idle_s - now, 0.0)) if self._manager.is_idle else _TIMERS_S)

    def _turn(self) -> None:
        messages = self._bell.messages()
        self._manager.turn(messages, look=bool(messages) or self._store_changed())

    def _store_changed(self) -> bool:
        """Ask now and then, in case a ring was lost; a ring that is heard needs no asking."""
        now, pause = self._house.clocks.tick_s(), _LOOK_S if self._bell.fileno() is not None else _NO_BELL_S
        if now - self._looked_s < pause and self._seen_version >= 0:
            return False
        self._looked_s = now
        version = self._house.insist(self._house.store.data_version)
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def _wait(self, timeout_s: float) -> None:
        bell = self._bell.fileno()
        ears = [self._mailbox.fileno()] if bell is None else [self._mailbox.fileno(), bell]
        select.select(ears, [], [], min(timeout_s, _NO_BELL_S) if bell is None else timeout_s)
