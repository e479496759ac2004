"""The progress of a submission: shown after half a second, removed when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from jupyter_autotrain.core.sizes import format_bytes

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
    """A line that a terminal overwrites; nothing is shown where the stream is no terminal."""

    def write(text: str) -> None:
        if stream.isatty():
            stream.write(text)
            stream.flush()

    return Progress(lambda text: write(f"\r\x1b[K{text}"), lambda: write("\r\x1b[K"))
