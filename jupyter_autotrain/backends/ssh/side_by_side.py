"""Calls to several hosts at the same time: one that does not answer delays no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class SideBySide:
    """Calls to several hosts at the same time."""

    def __init__(self) -> None:
        self._late: dict[str, Future[object]] = {}

    def call(self, calls: Mapping[str, Callable[[], T]], patience_s: float | None) -> dict[str, T]:
        """Call for each host; gives what came in time, or raises what one of these calls raised.

        Args:
            calls: One call per host.
            patience_s: How long to wait for all of them; None: until all have come.
        """
        begun: dict[str, Future[T]] = {}
        for host, call in calls.items():
            late = self._late.get(host)
            if late is None or late.done():
                begun[host] = _in_thread(call)
        done, _ = wait(begun.values(), patience_s)
        self._late.update({host: future for host, future in begun.items() if future not in done})  # type: ignore[misc]  # only `done` is asked of it
        return {host: future.result() for host, future in begun.items() if future in done}


def _in_thread(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
