"""The progress of a search: told on the way, and ended at its deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TextIO, TypeAlias

from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap


class OutOfTime(Exception):  # noqa: N818 - a signal inside the search
    """The time budget is spent."""


SHOWN_AFTER_S = 2.0  # a search that is shorter shows nothing
SHOWN_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search.

    Attributes:
        phase: What is searched now.
        elapsed_s: Since the search began.
        best_s: Step time of the best plan so far; inf: there is none yet.
        bound_s: No plan that is still to be searched in this phase is faster; 0.0: not known yet.
    """

    phase: str
    elapsed_s: float
    best_s: float
    bound_s: float

    def __str__(self) -> str:
        """Return one line, such as `Searching finer meshes, 8 s: best 412.0 ms, at most 6 % above the least.`."""
        head = f"Searching {self.phase}, {self.elapsed_s:.0f} s"
        if self.best_s == inf:
            return f"{head}: no plan yet."
        best = f"{head}: best {self.best_s * 1e3:.1f} ms"
        if self.bound_s <= 0:
            return f"{best}."
        gap = max(0.0, relative_gap(self.best_s, self.bound_s))
        return f"{best}, gap {gap:.1%}; an interrupt takes it."


ProgressListener: TypeAlias = Callable[[Progress], object]


@dataclass
class ProgressMonitor:
    """The messages and questions of a search on its way.

    Attributes:
        clock: Monotonic seconds.
        began: When the search began, by the clock.
        deadline: When it ends, by the clock.
        tell: Takes the progress at each check; it must be quick.
        phase: What is searched now.
        best_s: Step time of the best plan so far.
        bound_s: No plan that is left in this phase is faster.
    """

    clock: Callable[[], float] = time.monotonic
    began: float = 0.0
    deadline: float = inf
    tell: ProgressListener | None = None
    phase: str = "first plans"
    best_s: float = inf
    bound_s: float = 0.0

    def enter(self, phase: str) -> None:
        """Begin with a phase, of which no bound is known yet."""
        self.phase = phase
        self.bound_s = 0.0

    def check(self) -> None:
        """Tell how far the search is.

        Raises:
            OutOfTime: The deadline has passed.
        """
        now = self.clock()
        if self.tell:
            self.tell(Progress(self.phase, now - self.began, self.best_s, self.bound_s))
        if now > self.deadline:
            raise OutOfTime


class ProgressLine:
    """The progress of a search as one line that is written over, on a terminal or in a notebook."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_s = SHOWN_AFTER_S
        self._width = 0

    def tell(self, progress: Progress) -> None:
        """Write how far the search is, at most twice a second."""
        if progress.elapsed_s < self._next_s:
            return
        self._next_s = progress.elapsed_s + SHOWN_EVERY_S
        line = str(progress)
        self._write(line.ljust(self._width))
        self._width = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            self._write(" " * self._width + "\r")
            self._width = 0

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line}")
        self._stream.flush()


@contextmanager
def progress_on(stream: TextIO) -> Iterator[ProgressListener | None]:
    """Show progress on a stream that can write over its line, a terminal or a notebook's cell; on others none."""
    if not (stream.isatty() or type(stream).__module__.startswith("ipykernel.")):
        yield None
        return
    line = ProgressLine(stream)
    try:
        yield line.tell
    finally:
        line.clear()
