"""Finds the best split: `solve(graph, cluster, question)` gives a `Solution` with its certificate."""

from jupyter_autotrain.parallel.search.question import PROOF_S, Limits, Method, Mode, Question
from jupyter_autotrain.parallel.search.solution import Alternative, Cost, RankCost, Solution, StagePart, Strategy
from jupyter_autotrain.parallel.search.solve import persistently, solve
from jupyter_autotrain.parallel.search.space import Pins, Space

__all__ = [
    "PROOF_S",
    "Alternative",
    "Cost",
    "Limits",
    "Method",
    "Mode",
    "Pins",
    "Question",
    "RankCost",
    "Solution",
    "Space",
    "StagePart",
    "Strategy",
    "persistently",
    "solve",
]
