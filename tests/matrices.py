"""Matrices of parameters of which a few do by default."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

_Value = TypeVar("_Value")


def long_besides(default: Collection[_Value], whole: Iterable[_Value]) -> list[object]:
    """Return the whole matrix as parameters; all that are not in `default` take long."""
    return [value if value in default else pytest.param(value, marks=pytest.mark.long) for value in whole]
