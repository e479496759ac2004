"""How long an agent may take to answer, by what it is asked; whether it lives is found by heartbeats, and sooner."""

from __future__ import annotations

from collections.abc import Mapping

_ANSWER_S = 60.0
_LONG_ANSWER_S = 900.0
# What reads, removes or checks whole folders, or runs programs that take their time.
_LONG = frozenset({
    "python", "make_room", "data_room", "use_data", "keep_data", "remove", "experiments", "remove_experiments",
    "environments", "remove_environment", "slurm",
})  # fmt: skip


def patience_s(do: str, content: Mapping[str, object]) -> float:
    """Return how long the answer to a request may take."""
    grace_s = content.get("grace_s", 0.0)
    assert isinstance(grace_s, int | float)
    return grace_s + (_LONG_ANSWER_S if do in _LONG else _ANSWER_S)
