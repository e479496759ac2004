"""The request of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from jupyter_autotrain.parallel.cost.model import Settings
from jupyter_autotrain.parallel.search.request.space import Pins, StrategySpace


class Mode(StrEnum):
    """How much is searched (MindSpore's names)."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    AUTO_PARALLEL = "auto_parallel"


class Method(StrEnum):
    """Which solver."""

    DYNAMIC_PROGRAMMING = "dynamic_programming"
    RECURSIVE_PROGRAMMING = "recursive_programming"
    EXHAUSTIVE = "exhaustive"


PROOF_S = 7.0


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What a plan and its search may use.

    Attributes:
        memory_bytes: Of a rank; None, or more than a device has: what the device offers (`Device.usable_bytes`).
        time_s: From the beginning; None: no limit (huge graphs: a minute). What is linear in the graph, up
            to a first plan, is always finished.
        proof_s: How long to go on with meshes of three axes and more, once all meshes of two are searched, and what
            refines the best of them; None: to the end. This rarely improves the plan, only the bound.
        effort: Of the heuristic search, on better plans where memory slows the first; 0: take that one.
    """

    memory_bytes: float | None = None
    time_s: float | None = None
    proof_s: float | None = PROOF_S
    effort: float = 1.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that a search takes beside graph and cluster.

    Attributes:
        mode: How much is searched.
        search: Solver.
        limits: Memory and time.
        pins: What is decided already (`hybrid_parallel`).
        space: Where to search.
        settings: Constants of the cost model.
        baselines: Whether to cost the well-known plans as well.
    """

    mode: Mode = Mode.AUTO_PARALLEL
    search: Method = Method.DYNAMIC_PROGRAMMING
    limits: SearchLimits = field(default_factory=SearchLimits)
    pins: Pins = field(default_factory=Pins)
    space: StrategySpace = field(default_factory=StrategySpace)
    settings: Settings = field(default_factory=Settings)
    baselines: bool = True
