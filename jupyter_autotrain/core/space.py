"""Search spaces: what each hyperparameter may be, and the points of a space for a search that visits all of them.

The ten distributions are those of NNI's search space (same names, same rules), so that its files can be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, TypeAlias

from jupyter_autotrain.agent.json import JsonValue

ParamValues: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the options; an option that is a `NestedSpace` brings its own parameters."""

    KIND: ClassVar[str] = "choice"
    options: tuple[NestedSpace | JsonValue, ...]


@dataclass(frozen=True, slots=True)
class NestedSpace:
    """A named option of a `Choice` with parameters of its own, visible as `{"_name": name, ...}`."""

    KIND: ClassVar[str] = "nested"
    name: str
    space: Mapping[str, Distribution]


@dataclass(frozen=True, slots=True)
class RandInt:
    """An integer in [low, high)."""

    KIND: ClassVar[str] = "randint"
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Uniform:
    """A float in [low, high]; `log`: uniform logarithm; `q`: rounded to a multiple of q, then clipped."""

    KIND: ClassVar[str] = "uniform"
    low: float
    high: float
    log: bool = False
    q: float | None = None


@dataclass(frozen=True, slots=True)
class Normal:
    """A float from N(mu, sigma); with `log` the exponential of it; with `q` rounded to a multiple of q."""

    KIND: ClassVar[str] = "normal"
    mu: float
    sigma: float
    log: bool = False
    q: float | None = None


Distribution: TypeAlias = Choice | RandInt | Uniform | Normal
SearchSpace: TypeAlias = Mapping[str, Distribution]


LEVELS = 5  # points taken of an axis that is continuous
_LARGEST_AXIS = 10**6


def round_to(value: float, q: float | None) -> float:
    """Return the multiple of `q` nearest to `value`, or `value` itself without `q`."""
    if q is None or not math.isfinite(value / q):
        return value
    digits = max(0, 12 - math.floor(math.log10(q)))
    return round(round(value / q) * q, digits)


def from_unit(distribution: Uniform | Normal, u: float) -> float:
    """Return the value below which the distribution has the share `u` (in [0, 1]), rounded and clipped as in NNI."""
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


def is_finite(space: SearchSpace) -> bool:
    """Tell whether a space has a known, finite number of points: no distribution in it is continuous or unbounded."""
    return all(map(_is_finite, space.values()))


def _is_finite(distribution: Distribution) -> bool:
    if isinstance(distribution, Choice):
        inner = [option.space for option in distribution.options if isinstance(option, NestedSpace)]
        return all(map(is_finite, inner))
    if isinstance(distribution, RandInt):
        return True
    return _steps(distribution) is not None


def count_points(space: SearchSpace) -> int:
    """Return the number of points of the grid of a space."""
    return math.prod(map(_size, space.values()))


def point_at(space: SearchSpace, index: int) -> ParamValues:
    """Return the point number `index` (from 0, below `count_points(space)`); the last name varies fastest."""
    found: dict[str, JsonValue] = {}
    for name in reversed(list(space)):
        index, digit = divmod(index, _size(space[name]))
        found[name] = _at(space[name], digit)
    return {name: found[name] for name in space}


def _size(distribution: Distribution) -> int:
    if isinstance(distribution, Choice):
        return sum(map(_option_size, distribution.options))
    if isinstance(distribution, RandInt):
        return distribution.high - distribution.low
    steps = _steps(distribution)
    return len(_axis(distribution)) if steps is None else steps


def _option_size(option: NestedSpace | JsonValue) -> int:
    return count_points(option.space) if isinstance(option, NestedSpace) else 1


def _at(distribution: Distribution, digit: int) -> JsonValue:
    if isinstance(distribution, RandInt):
        return distribution.low + digit
    if isinstance(distribution, Choice):
        for option in distribution.options:
            if digit < _option_size(option):
                return nested(option.name, point_at(option.space, digit)) if isinstance(option, NestedSpace) else option
            digit -= _option_size(option)
        raise IndexError(digit)
    if isinstance(distribution, Uniform) and distribution.q is not None and _steps(distribution) is not None:
        first = round(distribution.low / distribution.q)
        value = round_to((first + digit) * distribution.q, distribution.q)
        return min(max(value, distribution.low), distribution.high)
    return _axis(distribution)[digit]


def _steps(distribution: Uniform | Normal) -> int | None:
    """Return the number of multiples of q between the bounds, with the ends clipped.

    It is None where the axis has no such steps.
    """
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
    """Return the value of a nested option: its name and its own parameters."""
    return {"_name": name, **params}


def lies_in(space: SearchSpace, params: ParamValues) -> bool:
    """Tell whether the parameters are a point of the space: all names, no other, each value allowed."""
    return params.keys() == space.keys() and all(allows(space[name], value) for name, value in params.items())


def allows(distribution: Distribution, value: JsonValue) -> bool:
    """Tell whether a value is one of a distribution's."""
    if isinstance(distribution, Choice):
        return any(_is_option(option, value) for option in distribution.options)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if isinstance(distribution, RandInt):
        return isinstance(value, int) and distribution.low <= value < distribution.high
    return _lies_on(distribution, value)


def _lies_on(distribution: Uniform | Normal, value: float) -> bool:
    if isinstance(distribution, Normal):
        return (value >= 0 or not distribution.log) and _is_multiple(value, distribution.q)
    at_bound = value in {distribution.low, distribution.high}
    return distribution.low <= value <= distribution.high and (at_bound or _is_multiple(value, distribution.q))


def _is_option(option: NestedSpace | JsonValue, value: JsonValue) -> bool:
    if isinstance(option, NestedSpace):
        if not isinstance(value, Mapping) or value.get("_name") != option.name:
            return False
        return lies_in(option.space, {key: item for key, item in value.items() if key != "_name"})
    return type(option) is type(value) and option == value


def _is_multiple(value: float, q: float | None) -> bool:
    return q is None or math.isclose(round(value / q) * q, value, rel_tol=1e-9, abs_tol=1e-12)
