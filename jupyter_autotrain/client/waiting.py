"""Waiting for a change of the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from jupyter_autotrain.store import Store

_MIN_POLL_S: Final = 0.002
_MAX_POLL_S: Final = 0.05
_POLL_SHARE: Final = 0.1
_NUDGE_EVERY_S: Final = 2.0


def wait_until(store: Store, done: Callable[[], bool], *, timeout_s: float | None, nudge: Callable[[], object]) -> bool:
    """Wait until `done()`, which is called only after a change of the store.

    The store is polled after a tenth of the time waited so far, between 2 and 50 ms; a poll costs microseconds.

    Args:
        store: The store.
        done: Whether the wait is over.
        timeout_s: The longest wait; None waits without limit.
        nudge: Makes sure that a process runs that changes the store. Called every two seconds and at the end of the
            time, since a caller may wait in short intervals.

    Returns:
        False at the end of the time.
    """
    begun_s = nudged_s = time.monotonic()
    seen = None
    while True:
        version = store.data_version()
        if version != seen and done():
            return True
        seen = version
        waited_s = time.monotonic() - begun_s
        left_s = _MAX_POLL_S if timeout_s is None else timeout_s - waited_s
        if left_s <= 0:
            nudge()
            return False
        if begun_s + waited_s - nudged_s > _NUDGE_EVERY_S:
            nudge()
            nudged_s = time.monotonic()
        time.sleep(min(max(waited_s * _POLL_SHARE, _MIN_POLL_S), _MAX_POLL_S, left_s))
