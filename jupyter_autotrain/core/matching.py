"""The known names most like an unknown one, for messages that say "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 64  # characters that are compared; difflib is quadratic in them


def closest_matches(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names most like `name`, best first, in any letter case.

    Args:
        name: The unknown name.
        known: The names that there are.
        most: How many to give at most.
        cutoff: The least similarity, from 0 (any) to 1 (equal).
    """
    by_fold = {one.casefold(): one for one in known}
    found = difflib.get_close_matches(name[:_LONGEST].casefold(), by_fold, n=most, cutoff=cutoff)
    return [by_fold[one] for one in found]


def closest_match(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name most like `name`, or "" where none is similar enough."""
    return next(iter(closest_matches(name, known, 1, cutoff)), "")
