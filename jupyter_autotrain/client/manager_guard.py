"""Who only reads brings the manager back: one is started where none is there and an experiment is unfinished."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError

_EVERY_S: Final = 2.0
_MOST_S: Final = 60.0  # between two tries where it cannot be started


class ManagerGuard:
    """Looks after the manager of a home, for one reader.

    Args:
        home: The home; none is made.
        is_needed: Whether something is unfinished; asked only where there is no manager.
        start: Starts a manager.
    """

    def __init__(self, home: Home, is_needed: Callable[[], bool], start: Callable[[], object]) -> None:
        self._home = home
        self._is_needed = is_needed
        self._start = start
        self._lock = threading.Lock()  # held while a manager is started
        self._pause_s = _EVERY_S
        self._next_s = time.monotonic() + _EVERY_S

    def look(self) -> None:
        """Start a manager, in the background, where one is missing; looks at most every two seconds."""
        if time.monotonic() < self._next_s or not self._lock.acquire(blocking=False):
            return
        self._next_s = time.monotonic() + self._pause_s
        try:
            is_missing = manager.is_missing(self._home) and self._is_needed()
        except BaseException:
            self._lock.release()
            raise
        if is_missing:
            threading.Thread(target=self._bring_back, name="autotrain-manager", daemon=True).start()
        else:
            self._pause_s = _EVERY_S
            self._lock.release()

    def _bring_back(self) -> None:
        try:
            with suppress(AutotrainError):  # reading goes on; the next command says why
                self._start()
            self._pause_s = min(2 * self._pause_s, _MOST_S)
        finally:
            self._lock.release()
