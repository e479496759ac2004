"""Reports that could not be kept: each kind is noted once, and then how often it has happened."""

from __future__ import annotations

import sys
from collections.abc import Callable

_MOST_KINDS = 50


class InvalidReports:
    """Counts invalid reports by metric and kind of fault.

    The first of a kind is noted at once, and printed on stderr; its count is sent again at 10, 100, 1000 ... and at
    the end, so that a report that is invalid in each step costs next to nothing.

    Args:
        note: Sends a note to the user: level, text, how often so far.
    """

    def __init__(self, note: Callable[[str, str, int], None]) -> None:
        self._note = note
        self._texts: dict[tuple[str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._sent: dict[tuple[str, str], int] = {}

    def add(self, metric: str, kind: str, text: str) -> None:
        """Count one report; `text` is why it was not kept, and only that of the first of its kind is sent."""
        key = (metric, kind)
        if key not in self._counts and len(self._counts) >= _MOST_KINDS:
            key = ("", "more")
            text = "reports of further kinds were not kept; only the first 50 kinds are counted apart"
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        if count == 1:
            self._texts[key] = text
            print_to_stderr(f"autotrain: {text}")
        if count == 1 or count == 10 * self._sent[key]:
            self._send(key)

    def first_of(self, metric: str) -> tuple[str, str]:
        """Kind and text of the first invalid report of a metric; two empty texts when it has none."""
        for key, text in self._texts.items():
            if key[0] == metric:
                return key[1], text
        return "", ""

    def flush(self) -> None:
        """Send the counts as they stand at the end."""
        for key, count in self._counts.items():
            if count != self._sent[key]:
                self._send(key)

    def _send(self, key: tuple[str, str]) -> None:
        self._sent[key] = self._counts[key]
        self._note("warning", self._texts[key], self._counts[key])


def print_to_stderr(text: str) -> None:
    """Write a line to the trial's own stderr, also when the user has closed it."""
    try:
        print(text, file=sys.stderr)  # noqa: T201 - the trial's own stderr
    except (OSError, ValueError):
        return
