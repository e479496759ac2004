"""Search spaces: what each hyperparameter may be.

The ten distributions are those of NNI's search space (same names, same rules), so that its files can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from jupyter_autotrain.core.json import JsonValue

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
