"""Saves, explains, compares and prints a plan; takes in what others planned. `Plan` is the entry point."""

from jupyter_autotrain.parallel.plan.difference import Change, PlanDifference
from jupyter_autotrain.parallel.plan.explanation import Explanation, Way
from jupyter_autotrain.parallel.plan.imports import Imported, Megatron, MindSpore
from jupyter_autotrain.parallel.plan.plan import Plan
from jupyter_autotrain.parallel.plan.timeline import Activity, TimeSegment

__all__ = [
    "Activity",
    "Change",
    "Explanation",
    "Imported",
    "Megatron",
    "MindSpore",
    "Plan",
    "PlanDifference",
    "TimeSegment",
    "Way",
]
