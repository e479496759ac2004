"""Saves, explains, compares and prints a plan; takes in what others planned. `Plan` is the entry point."""

from jupyter_autotrain.parallel.plan.degree_importers import Degrees, Megatron
from jupyter_autotrain.parallel.plan.difference import Change, PlanDifference
from jupyter_autotrain.parallel.plan.explanation import Explanation, OpAlternative
from jupyter_autotrain.parallel.plan.importers import MindSpore, PlanImporter
from jupyter_autotrain.parallel.plan.plan import Plan
from jupyter_autotrain.parallel.plan.timeline import Activity, TimeSegment

__all__ = [
    "Activity",
    "Change",
    "Degrees",
    "Explanation",
    "Megatron",
    "MindSpore",
    "OpAlternative",
    "Plan",
    "PlanDifference",
    "PlanImporter",
    "TimeSegment",
]
