"""Matrices of parameters of which a few do by default."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

_Value = TypeVar("_Value")


def long_besides(default: Collection[_Value], whole: Iterable[_Value]) -> list[object]:
    """Return the whole matrix as parameters where what takes long was asked for; else those in `default`.

    What is not even made is not collected in each of several processes.
    """
    if not os.environ.get("AUTOTRAIN_LONG_TESTS"):
        return [value for value in whole if value in default]
    return [value if value in default else pytest.param(value, marks=pytest.mark.long) for value in whole]
