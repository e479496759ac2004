"""Waiting for a change of the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from jupyter_autotrain.store import Store

_LEAST_PAUSE_S: Final = 0.002
_MOST_PAUSE_S: Final = 0.05
_AGE_SHARE: Final = 0.1
_NUDGE_EVERY_S: Final = 2.0


def wait_until(store: Store, done: Callable[[], bool], *, timeout_s: float | None, nudge: Callable[[], object]) -> bool:
    """Wait until `done()`, asking it only after a change of the store.

    The store is looked at after a tenth of the time waited so far, between 2 and 50 ms; a look costs microseconds.

    Args:
        store: What is watched.
        done: Says whether the wait is over.
        timeout_s: The longest wait; None waits for ever.
        nudge: Called every two seconds, and when the time is over, since a caller may wait in short turns; makes sure
            that somebody is there to change the store.

    Returns:
        False when the time was over first.
    """
    begun_s = nudged_s = time.monotonic()
    seen = None
    while True:
        version = store.data_version()
        if version != seen and done():
            return True
        seen = version
        waited_s = time.monotonic() - begun_s
        left_s = _MOST_PAUSE_S if timeout_s is None else timeout_s - waited_s
        if left_s <= 0:
            nudge()
            return False
        if begun_s + waited_s - nudged_s > _NUDGE_EVERY_S:
            nudge()
            nudged_s = time.monotonic()
        time.sleep(min(max(waited_s * _AGE_SHARE, _LEAST_PAUSE_S), _MOST_PAUSE_S, left_s))
