"""Reports that could not be kept: each kind is told once, and then how often it has happened."""

from __future__ import annotations

import sys
from collections.abc import Callable

_MOST_KINDS = 50


class Refusals:
    """Counts refused reports by metric and kind of trouble.

    The first of a kind is told at once, by a note and on stderr; its count is sent again at 10, 100, 1000 ... and at
    the end, so that a report that is refused in each step costs next to nothing.

    Args:
        note: Sends a note to the user: level, text, how often so far.
    """

    def __init__(self, note: Callable[[str, str, int], None]) -> None:
        self._note = note
        self._texts: dict[tuple[str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._told: dict[tuple[str, str], int] = {}

    def add(self, about: str, kind: str, text: str) -> None:
        """Count one refusal; `text` says why, the first one of this kind speaks for all."""
        key = (about, kind)
        if key not in self._counts and len(self._counts) >= _MOST_KINDS:
            key = ("", "more")
            text = "reports of further kinds were not kept; only the first 50 kinds are told apart"
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count == 1:
            self._texts[key] = text
            say(f"autotrain: {text}")
        if count == 1 or count == 10 * self._told[key]:
            self._tell(key)

    def of(self, name: str) -> tuple[str, str]:
        """Kind and text of the first refusal of a metric; two empty texts when it has none."""
        found = next((key for key in self._texts if key[0] == name), None)
        return ("", "") if found is None else (found[1], self._texts[found])

    def finish(self) -> None:
        """Send the counts as they stand at the end."""
        for key, count in self._counts.items():
            if count != self._told[key]:
                self._tell(key)

    def _tell(self, key: tuple[str, str]) -> None:
        self._told[key] = self._counts[key]
        self._note("warning", self._texts[key], self._counts[key])


def say(text: str) -> None:
    """Write a line to the trial's own stderr, also when the user has closed it."""
    try:
        print(text, file=sys.stderr)  # noqa: T201 - the trial's own stderr
    except (OSError, ValueError):
        return
