"""When a trial would end on each backend of its experiment, and which one it is put on: where it ends first.

The rule is that of minimum completion time (Maheswaran et al., 1999, "Dynamic matching and scheduling of a class of
independent tasks onto heterogeneous computing systems"), with the time until a slot is free, to start and to run as
measured on trials of this experiment. Of equal trials it gives a shortest schedule. A trial waits for a fast backend
where that ends sooner than a slow one that is free.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.text_format import count, duration

_WINDOW = 20
_RARE = 0.15
_FEW = 3
_UNKNOWN_RUN_S = 1.0  # any time does as long as nothing is known of any backend: it only spreads the trials


def _window() -> deque[float]:
    return deque(maxlen=_WINDOW)


@dataclass(slots=True)
class BackendTimes:
    """Times of an experiment's newest trials on a backend; only those that succeeded have run to their end.

    Attributes:
        starts_s: From the decision to the start.
        runs_s: From the start to the end.
        succeeded, failed: How many ended so; a backend where trials fail at once is not a fast one.
    """

    starts_s: deque[float] = field(default_factory=_window)
    runs_s: deque[float] = field(default_factory=_window)
    succeeded: int = 0
    failed: int = 0

    def add(self, state: TrialState, start_s: float, run_s: float) -> None:
        """Add a trial that has ended; one that was stopped says nothing of the backend."""
        if state is TrialState.SUCCEEDED:
            self.succeeded += 1
            self.starts_s.append(start_s)
            self.runs_s.append(run_s)
        elif state in {TrialState.FAILED, TrialState.LOST, TrialState.PREEMPTED}:
            self.failed += 1

    @property
    def longest_s(self) -> float:
        """The longest that a trial took there from the decision to its end; infinite before three have succeeded."""
        if len(self.runs_s) < _FEW:
            return math.inf
        return max(self.starts_s) + max(self.runs_s)

    @property
    def attempts_per_success(self) -> float:
        """Return how many attempts a success takes there, as far as it is known (rule of succession)."""
        return (self.succeeded + self.failed + 1) / (self.succeeded + 1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that a trial could be put on.

    Attributes:
        ages_s: Of the experiment's trials there: the time since each was put there.
        slots: How many such trials it runs at the same time.
        is_free: Whether the trial would start now.
        is_pending: Whether what it has is about to be known.
        waiting: How many trials of the experiment that come first are to wait for it.
        prefer: Its weight: with 2 it is taken unless the trial ends there more than twice as late.
    """

    name: str
    times: BackendTimes
    ages_s: tuple[float, ...] = ()
    slots: float = 1.0
    is_free: bool = True
    waiting: int = 0
    prefer: float = 1.0
    is_pending: bool = False

    @property
    def is_untried(self) -> bool:
        """True when no trial of the experiment was or is there, or waits for it."""
        return not (self.ages_s or self.waiting or self.times.succeeded or self.times.failed)

    @property
    def can_be_tried(self) -> bool:
        """True when a first trial of the experiment would start there now or in a moment."""
        return self.is_untried and (self.is_free or self.is_pending)


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a trial would end on a backend, in seconds from now."""

    candidate: Candidate
    wait_s: float
    start_s: float
    run_s: float

    @property
    def completion_s(self) -> float:
        """Until its end."""
        return self.wait_s + self.start_s + self.run_s

    @property
    def cost(self) -> tuple[float, bool, float]:
        """Return what is the least for the backend that is chosen."""
        candidate = self.candidate
        load = (len(candidate.ages_s) + candidate.waiting) / max(candidate.slots, 1.0)
        return self.completion_s / candidate.prefer, not candidate.is_free, load / candidate.prefer


def estimates(candidates: Sequence[Candidate]) -> list[Estimate]:
    """When a trial would end on each; a backend without any success is taken to be like the others. O(trials)."""
    pooled: list[float] = []
    ages_s = [_UNKNOWN_RUN_S]
    for candidate in candidates:
        pooled += candidate.times.runs_s
        ages_s += candidate.ages_s
    usual_s = statistics.median(pooled) if pooled else max(ages_s)
    return [_estimate(candidate, usual_s) for candidate in candidates]


def choose(found: Sequence[Estimate]) -> Estimate:
    """Return the backend for a trial: try each that is free once, in order of preference, then take the best.

    One where nothing but failures has been seen is kept away from, while fewer trials fail on the others.
    """
    untried = [one for one in found if one.candidate.can_be_tried]
    if untried:
        return max(untried, key=lambda one: one.candidate.prefer)
    working = [one for one in found if not _only_fails(one, found)]
    return min(working or found, key=lambda one: one.cost)


def _only_fails(one: Estimate, found: Sequence[Estimate]) -> bool:
    """Return whether so many failures without a success would be a rare accident at the rate of the other backends."""
    times = one.candidate.times
    others = [other.candidate.times for other in found if other is not one]
    if times.succeeded or not others:
        return False
    failed = sum(other.failed for other in others)
    rate = (failed + 1) / (failed + sum(other.succeeded for other in others) + 2)  # rule of succession
    return rate**times.failed < _RARE


def explain(chosen: Estimate, found: Sequence[Estimate]) -> str:
    """Why a trial is put there, as the rest of a sentence."""
    name = chosen.candidate.name
    if chosen.candidate.is_untried:
        return f"{name} as the first one there, which measures it"
    others = [one for one in found if one is not chosen]
    is_first = all(chosen.completion_s <= one.completion_s for one in others)
    reason = "where it ends first" if is_first else f"which is preferred (`prefer: {chosen.candidate.prefer:g}`)"
    rest = ", ".join(f"on {one.candidate.name} in about {duration(one.completion_s)}" for one in others)
    return f"{name}, {reason}: in about {_details(chosen)}; {rest}" if rest else f"{name}, {reason}"


def _details(one: Estimate) -> str:
    measured = len(one.candidate.times.runs_s)
    parts = [f"{duration(one.wait_s)} until a slot is free" if one.wait_s else "", f"{duration(one.run_s)} to run"]
    source = f"by {count(measured, 'trial')} there" if measured else "not measured yet"
    return f"{duration(one.completion_s)} ({', '.join(filter(None, parts))}, {source})"


def _estimate(candidate: Candidate, usual_s: float) -> Estimate:
    times = candidate.times
    start_s = statistics.median(times.starts_s) if times.starts_s else 0.0
    run_s = statistics.median(times.runs_s) if times.runs_s else max((usual_s, *candidate.ages_s))
    run_s *= times.attempts_per_success
    return Estimate(candidate, _wait_s(candidate, start_s + run_s), start_s, run_s)


def _wait_s(candidate: Candidate, whole_s: float) -> float:
    """Return the time until a slot is free for it, behind those that wait already."""
    there = len(candidate.ages_s)
    ahead = candidate.waiting + max(there - candidate.slots, 0)
    if candidate.is_free and there + candidate.waiting < candidate.slots:
        return 0.0
    if not candidate.ages_s:  # others hold it
        return whole_s * (1 + candidate.waiting)
    if math.isinf(ahead):
        return 0.0
    left_s = sorted(_left_s(age_s, whole_s) for age_s in candidate.ages_s)
    rounds, position = divmod(int(ahead), len(left_s))
    return left_s[position] + rounds * whole_s


def _left_s(age_s: float, whole_s: float) -> float:
    """Return how long a trial goes on.

    One that is overdue as long again as it is overdue, so that none is waited for long.
    """
    return abs(whole_s - age_s)
