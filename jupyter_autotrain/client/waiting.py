"""Waiting: for places with patience that ends, for changes of the store, and the line of a submission's progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Final, TextIO, TypeVar

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.store import Store

T = TypeVar("T")
CELL_S: Final = 5.0
LOOK_S: Final = 15.0  # for a command that is there to look at places
PROBES_AT_ONCE: Final = 16  # backends that are asked at the same time


class Patience:
    """The time that a command waits for places.

    Attributes:
        left_s: What is left of it.
    """

    def __init__(self, most_s: float = CELL_S) -> None:
        self.left_s = most_s
        self._most_s = most_s

    def ask(self, calls: Sequence[Callable[[], T]]) -> list[T | None]:
        """Make calls that may hang, all at the same time; None for one that has not returned in time.

        Such a call goes on in a thread that keeps no process alive. What a call raises is raised here.
        """
        begun_s = time.monotonic()
        futures = list(map(_in_thread, calls))
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


_SHOW_AFTER_S = 0.5
_UPDATE_EVERY_S = 0.1
_BAR = 24


class Progress:
    """One line that is replaced as the work continues; nothing is shown in the first half second.

    Args:
        show: Puts a line in the place of the one before.
        clear: Removes the line.
    """

    def __init__(self, show: Callable[[str], object], clear: Callable[[], object]) -> None:
        self._show = show
        self._clear = clear
        self._next_s = time.monotonic() + _SHOW_AFTER_S
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown:
            self._shown = False
            self._clear()

    def captured(self, size_bytes: int) -> None:
        """Show how much data has been pickled."""
        self._update(f"Capturing variables: {format_bytes(size_bytes)}   (interrupt: nothing is sent)")

    def fetched(self, name: str, size_bytes: int, total_bytes: int) -> None:
        """Show how much of an entry of `data:` has come; a total of 0: its place prepares it, or does not say."""
        share = f"{format_bytes(size_bytes)} of {format_bytes(total_bytes)}"
        known = f"[{_bar(size_bytes, total_bytes)}] {share}" if total_bytes else format_bytes(size_bytes)
        text = known if total_bytes or size_bytes else "its server prepares it"
        self._update(f"Fetching data.{name}: {text}   (interrupt: nothing is sent)")

    def read_data(self, size_bytes: int, total_bytes: int) -> None:
        """Show how much of the files of `data:` has been read for their digests."""
        share = f"{format_bytes(size_bytes)} of {format_bytes(total_bytes)}"
        self._update(f"Reading data [{_bar(size_bytes, total_bytes)}] {share}   (interrupt: nothing is sent)")

    def written(self, size_bytes: int, total_bytes: int) -> None:
        """Show how much of the code, data and files has been written."""
        share = f"{format_bytes(size_bytes)} of {format_bytes(total_bytes)}"
        self._update(f"Writing [{_bar(size_bytes, total_bytes)}] {share}   (interrupt: nothing is sent)")

    def _update(self, text: str) -> None:
        if time.monotonic() >= self._next_s:
            self._shown = True
            self._show(text)
            self._next_s = time.monotonic() + _UPDATE_EVERY_S


def _bar(done: int, total: int) -> str:
    full = min(_BAR * done // max(total, 1), _BAR)
    return "#" * full + "." * (_BAR - full)


def in_terminal(stream: TextIO) -> Progress:
    """Return a line that a terminal overwrites; nothing is shown where the stream is no terminal."""

    def write(text: str) -> None:
        if stream.isatty():
            stream.write(text)
            stream.flush()

    return Progress(lambda text: write(f"\r\x1b[K{text}"), lambda: write("\r\x1b[K"))


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
