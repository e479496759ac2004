"""Measure what capturing many or large objects costs the kernel, in CPU seconds, against the limit of 1 s."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jupyter_autotrain import capture

LIMIT_S = 1.0
OBJECTS = 50_000
ROUNDS = 3


@dataclass
class Point:
    """A small object."""

    x: float
    y: float
    label: str


KINDS: dict[str, Callable[[int], object]] = {
    "dataclass instances": lambda i: Point(i, -i, f"p{i}"),
    "dicts": lambda i: {"x": i, "y": -i, "label": f"p{i}"},
    "nested tuples": lambda i: (i, (f"p{i}", [float(i)])),
    "texts": lambda i: f"text number {i}",
    "small arrays": lambda i: np.full(3, float(i)),
}


def cost_s(value: object) -> float:
    """Return the least CPU seconds that one capture of this value takes."""
    took = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        capture.capture("print(len(value))", {"value": value, "__name__": "notebook"}, cwd=Path())
        took.append(time.process_time() - begun)
    return min(took)


def main() -> None:
    """Measure lists of each kind, a dict of texts, and 150 MB in one array."""
    for kind, make in KINDS.items():
        show(f"{OBJECTS} {kind}", cost_s([make(i) for i in range(OBJECTS)]))
    show(f"dict of {OBJECTS} texts", cost_s({f"key {i}": f"text number {i}" for i in range(OBJECTS)}))
    show("an array of 150 MB", cost_s(np.zeros(18_750_000)))


def show(what: str, took_s: float) -> None:
    """Print one figure."""
    print(f"capture of {what}: {took_s:.2f} CPU s; limit {LIMIT_S:g}; ratio {LIMIT_S / took_s:.1f}", flush=True)


if __name__ == "__main__":
    main()
