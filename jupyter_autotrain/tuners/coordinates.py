"""A search space walked name by name, nested spaces included: to make parameters, and to read them back.

Each leaf has a path (`lr`, `net/0/width`) and a coordinate: of a choice the option's index, else the value itself.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from statistics import NormalDist

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.space import (
    Choice,
    Distribution,
    NestedSpace,
    Normal,
    ParamValues,
    RandInt,
    SearchSpace,
    Uniform,
    nested,
)

Coordinate = int | float
Pick = Callable[[str, Distribution], Coordinate]


def build(space: SearchSpace, pick: Pick, prefix: str = "") -> dict[str, JsonValue]:
    """Make parameters by calling `pick(path, distribution)` for each coordinate."""
    params: dict[str, JsonValue] = {}
    for name, distribution in space.items():
        path = f"{prefix}{name}"
        coordinate = pick(path, distribution)
        params[name] = coordinate
        if isinstance(distribution, Choice):
            option = distribution.options[int(coordinate)]
            if isinstance(option, NestedSpace):
                params[name] = nested(option.name, build(option.space, pick, f"{path}/{int(coordinate)}/"))
            else:
                params[name] = option
    return params


def read_back(space: SearchSpace, params: ParamValues, prefix: str = "") -> dict[str, tuple[Distribution, Coordinate]]:
    """Return the coordinates of parameters that `build` made; what does not lie in the space is left out."""
    found: dict[str, tuple[Distribution, Coordinate]] = {}
    for name, distribution in space.items():
        value = params.get(name)
        path = f"{prefix}{name}"
        if isinstance(distribution, Choice):
            index = _index(distribution, value)
            if index is None:
                continue
            found[path] = (distribution, index)
            option = distribution.options[index]
            if isinstance(option, NestedSpace) and isinstance(value, Mapping):
                found |= read_back(option.space, value, f"{path}/{index}/")
        elif isinstance(value, int | float) and _holds(distribution, value):
            found[path] = (distribution, value)
    return found


def _index(choice: Choice, value: JsonValue) -> int | None:
    if isinstance(value, Mapping) and "_name" in value:
        names = [option.name if isinstance(option, NestedSpace) else None for option in choice.options]
        if value["_name"] in names:
            return names.index(str(value["_name"]))
    texts = [None if isinstance(option, NestedSpace) else _text(option) for option in choice.options]
    return texts.index(_text(value)) if _text(value) in texts else None


def _text(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def _holds(distribution: Distribution, value: float) -> bool:
    if isinstance(distribution, RandInt):
        return distribution.low <= value < distribution.high
    if isinstance(distribution, Uniform):
        return distribution.low <= value <= distribution.high
    return math.isfinite(value)


def to_unit(distribution: Uniform | Normal, value: float) -> float:
    """Return the share in [0, 1] of a value: the inverse of `from_unit`, but for rounding."""
    if isinstance(distribution, Normal):
        z = math.log(max(value, 1e-300)) if distribution.log else value
        return NormalDist(distribution.mu, distribution.sigma).cdf(z)
    low = distribution.low
    high = distribution.high
    if low == high:
        return 0.5
    if distribution.log:
        return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return min(max(value / (high - low) - low / (high - low), 0.0), 1.0)


def generator(seed: int | None, number: int) -> random.Random:
    """Return the random numbers of one trial: the same for the same seed and number; without a seed never the same."""
    return random.SystemRandom() if seed is None else random.Random(f"{seed}/{number}")
