"""The names that every trial finds in its globals, next to those of its search space."""

from __future__ import annotations

from typing import Final

TRIAL: Final = "trial"
"""The one that has all others as attributes, for notebooks that bind some of them themselves."""

MEMBERS: Final = ("checkpoint", "display", "params", "rank", "report", "should_stop", "world_size")
"""The attributes of `trial`; each of them is a name of its own too."""

TRIAL_ONLY: Final = ("hints",)
"""Further attributes of `trial`, which are no names of their own."""

TRIAL_NAMES: Final = frozenset({TRIAL, *MEMBERS})

DATA: Final = "data"
"""The name of the paths of `data:`; a trial has it, and as an attribute of `trial`, only where the header has such."""
