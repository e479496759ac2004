"""The points of a search space, for a search that visits all of them: how many there are, and which is the k-th."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.space import (
    Choice,
    Distribution,
    NestedSpace,
    Normal,
    ParamValues,
    RandInt,
    SearchSpace,
    Uniform,
)

LEVELS = 5  # points taken of an axis that is continuous
_LARGEST_AXIS = 10**6


def round_to(value: float, q: float | None) -> float:
    """The multiple of `q` nearest to `value` (`value` itself without q)."""
    if q is None or not math.isfinite(value / q):
        return value
    digits = max(0, 12 - math.floor(math.log10(q)))
    return round(round(value / q) * q, digits)


def from_unit(distribution: Uniform | Normal, u: float) -> float:
    """The value at which the distribution has the share `u` (in [0, 1]) below it; rounded and clipped as NNI does."""
    if isinstance(distribution, Normal):
        z = NormalDist(distribution.mu, distribution.sigma).inv_cdf(min(max(u, 1e-12), 1 - 1e-12))
        return round_to(math.exp(min(z, 700.0)) if distribution.log else z, distribution.q)
    low = distribution.low
    high = distribution.high
    if distribution.log:
        value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    else:
        value = low * (1 - u) + high * u
    return min(max(round_to(value, distribution.q), low), high)


def count(space: SearchSpace) -> int:
    """How many points the grid of a space has."""
    return math.prod(_size(distribution) for distribution in space.values())


def point(space: SearchSpace, index: int) -> ParamValues:
    """The point number `index` (from 0, below `count(space)`); the last name varies fastest."""
    found: dict[str, JsonValue] = {}
    for name in reversed(list(space)):
        index, digit = divmod(index, _size(space[name]))
        found[name] = _at(space[name], digit)
    return {name: found[name] for name in space}


def _size(distribution: Distribution) -> int:
    if isinstance(distribution, Choice):
        return sum(_option_size(option) for option in distribution.options)
    if isinstance(distribution, RandInt):
        return distribution.high - distribution.low
    steps = _steps(distribution)
    return len(_axis(distribution)) if steps is None else steps


def _option_size(option: NestedSpace | JsonValue) -> int:
    return count(option.space) if isinstance(option, NestedSpace) else 1


def _at(distribution: Distribution, digit: int) -> JsonValue:
    if isinstance(distribution, RandInt):
        return distribution.low + digit
    if isinstance(distribution, Choice):
        for option in distribution.options:
            if digit < _option_size(option):
                return nested(option.name, point(option.space, digit)) if isinstance(option, NestedSpace) else option
            digit -= _option_size(option)
        raise IndexError(digit)
    if isinstance(distribution, Uniform) and distribution.q is not None and _steps(distribution) is not None:
        first = round(distribution.low / distribution.q)
        value = round_to((first + digit) * distribution.q, distribution.q)
        return min(max(value, distribution.low), distribution.high)
    return _axis(distribution)[digit]


def _steps(distribution: Uniform | Normal) -> int | None:
    """How many multiples of q lie between the bounds, ends clipped; None where the axis has no such steps."""
    if isinstance(distribution, Normal) or distribution.q is None:
        return None
    if not math.isfinite(distribution.high / distribution.q) or not math.isfinite(distribution.low / distribution.q):
        return None
    steps = round(distribution.high / distribution.q) - round(distribution.low / distribution.q) + 1
    return steps if steps <= _LARGEST_AXIS else None


def _axis(distribution: Uniform | Normal) -> list[float]:
    shares = [(i + 0.5) / LEVELS if isinstance(distribution, Normal) else i / (LEVELS - 1) for i in range(LEVELS)]
    return list(dict.fromkeys(from_unit(distribution, u) for u in shares))


def nested(name: str, params: Mapping[str, JsonValue]) -> JsonValue:
    """The value of a nested option: its name and its own parameters."""
    return {"_name": name, **params}
