"""Differences between a trial and the notebook, reported before anything is sent.

Every part of the capture that finds one adds a `Difference`. The preview above a submission, `--dry-run` and
`--check` show the list; what cannot be described in one line is refused instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class DifferenceKind(StrEnum):
    """The ways in which a trial differs from running the cell here; the order is that of the list."""

    REPLAYED = "set again"
    NOT_CARRIED = "not carried"
    COPIED = "copied"
    RENAMED = "name taken"


@dataclass(frozen=True, slots=True)
class Difference:
    """A thing that is not the same in a trial.

    Attributes:
        kind: In which way it differs.
        text: What is meant, and what follows for the trial; one line that names the variable or the call.
        origin: The cell it comes from, or "".
    """

    kind: DifferenceKind
    text: str
    origin: str = ""

    @property
    def line(self) -> str:
        """The kind, the text and the origin in one line."""
        return f"{self.kind}: {self.text}{f' ({self.origin})' if self.origin else ''}"


def not_carried(text: str, origin: str = "") -> Difference:
    """Return the difference of what a trial does not have."""
    return Difference(DifferenceKind.NOT_CARRIED, text, origin)


def format_differences(differences: Iterable[Difference], *, rows: int | None = None) -> str:
    """Return the list as text, one line each under a heading; "" when nothing differs.

    Args:
        differences: What differs.
        rows: How many lines at most; None means all.
    """
    order = list(DifferenceKind)
    ordered = sorted(differences, key=lambda one: order.index(one.kind))
    lines = [f"  {one.line}" for one in ordered]
    if not lines:
        return ""
    more = len(lines) - rows if rows is not None and len(lines) > rows else 0
    shown = lines[: len(lines) - more]
    rest = [f"  ... and {more} more (all of them: --check)"] if more else []
    return "\n".join(["In a trial, other than here:", *shown, *rest])
