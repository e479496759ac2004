"""How long a command waits for places: some seconds in all, then it goes on without those that have not answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Final, TypeVar

from jupyter_autotrain.errors import BackendUnavailableError

T = TypeVar("T")
CELL_S: Final = 5.0
LOOK_S: Final = 15.0  # for a command that is there to look at places


class Patience:
    """The time that a command waits for places.

    Attributes:
        left_s: What is left of it.

    Args:
        most_s: All of it.
    """

    def __init__(self, most_s: float = CELL_S) -> None:
        self.left_s = most_s
        self._most_s = most_s

    def ask(self, calls: Sequence[Callable[[], T]]) -> list[T | None]:
        """Make calls that may hang, all at the same time; None for one that has not returned in time.

        Such a call goes on in a thread that keeps no process alive. What a call raises is raised here.
        """
        begun_s = time.monotonic()
        futures = [_in_thread(call) for call in calls]
        wait(futures, timeout=self.left_s)
        self.spend(time.monotonic() - begun_s)
        return [future.result() if future.done() else None for future in futures]

    def ask_one(self, name: str, call: Callable[[], T]) -> T:
        """Make one call to a backend that may hang.

        Raises:
            BackendUnavailableError: It has not returned in time.
        """
        (found,) = self.ask([lambda: (call(),)])
        if found is None:
            raise BackendUnavailableError(
                f"The backend {name!r} has not answered within {self._most_s:g} s.",
                "A backend that answers.",
                f"See what is wrong with it: %autotrain backends check {name}",
            )
        return found[0]

    def spend(self, took_s: float) -> None:
        """Take off what was waited."""
        self.left_s = max(self.left_s - took_s, 0.0)


def _in_thread(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
            future.set_exception(error)

    threading.Thread(target=run, name="autotrain-ask", daemon=True).start()
    return future
