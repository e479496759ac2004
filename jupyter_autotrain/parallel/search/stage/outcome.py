"""A solved candidate: its stages with their decisions, and the time of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.pipeline import pipeline_s
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown, OpChoice
from jupyter_autotrain.parallel.search.factors.problem import Rank, rank
from jupyter_autotrain.parallel.search.request.space import Candidate
from jupyter_autotrain.parallel.search.stage.invariants import check_cover


@dataclass(frozen=True, slots=True)
class Stage:
    """A solved stage: its blocks, its choices, what it costs, and how many microbatches it holds."""

    blocks: range
    choices: Mapping[int, OpChoice]
    breakdown: CostBreakdown
    send_s: float
    in_flight: float
    device: Device

    @property
    def micro_s(self) -> float:
        """One microbatch with its messages."""
        return self.breakdown.micro_s + self.send_s

    @property
    def bytes(self) -> float:
        """Peak memory of a rank."""
        return self.breakdown.bytes(self.in_flight)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A candidate with its stages and what the step takes; no plan of this candidate is faster than `bound_s`.

    Strategies are rows of the tables of `models`, one per stage. `multiplier` is what one more byte of memory would
    save, where known [s/byte].

    Raises:
        InvariantError: Some op is in no stage, or in two.
    """

    candidate: Candidate
    stages: tuple[Stage, ...]
    bound_s: float
    models: tuple[CostModel, ...]
    multiplier: float = 0.0

    def __post_init__(self) -> None:
        check_cover([stage.choices for stage in self.stages], range(len(self.models[0].graph.ops)))

    @property
    def step_s(self) -> float:
        """Predicted seconds of one step."""
        times = [stage.micro_s for stage in self.stages]
        once = max(stage.breakdown.step_s for stage in self.stages)
        return pipeline_s(times, self.candidate.microbatches, self.candidate.chunks) + once

    @property
    def bytes(self) -> float:
        """Peak memory of the fullest rank."""
        return max(stage.bytes for stage in self.stages)

    @property
    def rank(self) -> Rank:
        """The order of plans."""
        return rank(self.step_s, self.bytes)


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """The result of solving a candidate.

    Attributes:
        outcome: A plan that fits, when one was found.
        bound_s: No plan of the candidate is faster; infinite where none fits or can win.
        least_bytes: Memory that would do where nothing fits, where that is known.
    """

    outcome: Outcome | None
    bound_s: float
    least_bytes: float = inf
