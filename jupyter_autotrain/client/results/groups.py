"""Groups of trials that are equal in some parameters, and the mean and spread of a metric in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.text_format import closest_match, parameter
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value: TypeAlias = str | int | float | bool | None
Spread: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float64]]"


@dataclass(frozen=True, slots=True)
class Groups:
    """Trials by their values of some parameters.

    Attributes:
        names: The parameters.
        members: The numbers of the trials by these values, in the order of `names`.
    """

    names: Sequence[str]
    members: dict[tuple[Value, ...], list[int]] = field(default_factory=dict)

    def label(self, key: Sequence[Value]) -> str:
        """Return a group as text: `width=32 depth=2`."""
        return " ".join(f"{name}={parameter(value)}" for name, value in zip(self.names, key, strict=True))


def group(
    params: Mapping[int, Mapping[str, JsonValue]], by: str | Sequence[str] = (), over: str | Sequence[str] = ()
) -> Groups:
    """Return the trials in groups; all in one where no parameter is left to tell them apart.

    Args:
        params: The parameters of each trial, by its number.
        by: The parameters that the trials of a group share.
        over: The only ones that they may differ in: instead of `by`.

    Raises:
        AutotrainError: A parameter is not known.
    """
    known = list(dict.fromkeys(chain.from_iterable(params.values())))
    chosen = [by] if isinstance(by, str) else list(by)
    left_out = [over] if isinstance(over, str) else list(over)
    for name in (*chosen, *left_out):
        if name not in known:
            guess = closest_match(name, known)
            raise AutotrainError(
                f"No trial has a parameter {name!r}.",
                f"Did you mean {guess!r}?" if guess else f"Expected one of: {', '.join(known) or 'none'}.",
                "Name parameters of `search:`.",
            )
    names = chosen or [name for name in known if name not in left_out]
    groups = Groups(names)
    for number, one in params.items():
        groups.members.setdefault(tuple(plain(one.get(name)) for name in names), []).append(number)
    return groups


def plain(value: JsonValue) -> Value:
    """Return a parameter as a value that a table holds: an option of a nested choice as text."""
    return value if value is None or isinstance(value, str | int | float) else parameter(value)


def spread(curves: Sequence[Columns]) -> Spread:
    """Return the steps that curves have together, and for each the mean, the sample's deviation and the count.

    A value that is NaN does not count; the deviation of one value is NaN. O(points of all curves, sorted).

    Args:
        curves: At least one.

    Returns:
        Steps of shape (n,), and rows of shape (3, n).
    """
    import numpy as np  # noqa: PLC0415 - slow, and %load_ext does without

    all_steps = np.concatenate([np.frombuffer(steps, dtype=np.int64) for steps, _ in curves])
    values = np.concatenate([np.frombuffer(column, dtype=np.float64) for _, column in curves])
    steps, place = np.unique(all_steps, return_inverse=True)
    counts = np.isfinite(values)
    count = np.bincount(place[counts], minlength=len(steps)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(place[counts], values[counts], len(steps)) / count
        squares = np.bincount(place[counts], (values - mean[place])[counts] ** 2, len(steps))
        deviation = np.sqrt(squares / np.where(count > 1, count - 1, np.nan))
    return steps, np.stack([mean, deviation, count])
