"""Measured steps of plans beside what was predicted: what a trial tells, and how well later plans may be believed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from jupyter_autotrain.core.text_format import count

MEASUREMENT_LEVEL: Final = "plan"
"""Of the note by which a trial tells a measurement; the note's text is a `Measurement` as JSON."""
LAST: Final = 5  # measurements that later plans are believed by
ENOUGH: Final = 3  # of them to say how large the error is


@dataclass(frozen=True, slots=True)
class Measurement:
    """A plan that has run: what was predicted, and what each rank took and held.

    Attributes:
        family: The model's class.
        plan: The plan's name.
        cluster: What it was made for.
        devices: Kinds of its devices.
        predicted_step_s: Seconds of a step.
        predicted_bytes: Most bytes of a rank.
        step_s: Of each rank.
        peak_bytes: Of each rank; empty where they could not be counted.
    """

    family: str
    plan: str
    cluster: str
    devices: tuple[str, ...]
    predicted_step_s: float
    predicted_bytes: float
    step_s: tuple[float, ...]
    peak_bytes: tuple[int, ...] = ()

    @property
    def error(self) -> float:
        """Relative distance of the predicted step from the slowest rank's."""
        return abs(self.predicted_step_s / max(self.step_s) - 1)

    @property
    def memory_error(self) -> float | None:
        """The same of the fullest rank's memory; None where it could not be counted."""
        return abs(self.predicted_bytes / max(self.peak_bytes) - 1) if self.peak_bytes else None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of the last plans that were measured on some devices.

    Attributes:
        plans: How many.
        error: Largest relative error of their steps.
        memory_error: Of their memory; None where it could not be counted.
        family: The model's class, where all are of the one that is asked about.
    """

    plans: int
    error: float
    memory_error: float | None
    family: str = ""

    def __str__(self) -> str:
        of = f" of {self.family}" if self.family else ""
        memory = "" if self.memory_error is None else f", their memory within {self.memory_error:.0%}"
        plans = "The last plan" if self.plans == 1 else f"The last {count(self.plans, 'plan')}"
        was = "was" if self.plans == 1 else "were"
        memory = memory.replace("their", "its") if self.plans == 1 else memory
        return f"{plans}{of} measured here {was} predicted within {self.error:.0%}{memory}."


def accuracy(measured: Sequence[Measurement], family: str) -> Accuracy | None:
    """Return how well the last plans were predicted: those of a family of models where there are enough, else all.

    Args:
        measured: On the devices in question, newest first.
        family: The model's class.
    """
    alike = [one for one in measured if one.family == family][:LAST]
    last = alike if len(alike) >= ENOUGH else list(measured[:LAST])
    if not last:
        return None
    memory = [one.memory_error for one in last if one.memory_error is not None]
    known = max(memory, default=None)
    return Accuracy(len(last), max(one.error for one in last), known, family if last == alike else "")


def find_measurements(devices: Iterable[str]) -> list[Measurement]:
    """Return the measurements of plans on some kinds of devices, newest first, from the user's home."""
    found = import_module("jupyter_autotrain").find_measurements(frozenset(devices))
    return cast("list[Measurement]", found)
