"""Every verb of `%autotrain VERB` and `jupyter autotrain VERB`, as text.

A verb is a function of (`CommandContext`, parsed arguments), which `run` calls. What differs between a notebook and a
shell (how an experiment is shown, where a loaded object goes) is in the `CommandContext`.
"""

from jupyter_autotrain.verbs.context import CommandContext, Presentable
from jupyter_autotrain.verbs.control import follow
from jupyter_autotrain.verbs.help import CELL_NAMES, MAGIC, complete_verb
from jupyter_autotrain.verbs.plan import PlanRequest, make_plan, show_plan
from jupyter_autotrain.verbs.run import VERBS, run

__all__ = [
    "CELL_NAMES",
    "MAGIC",
    "VERBS",
    "CommandContext",
    "PlanRequest",
    "Presentable",
    "complete_verb",
    "follow",
    "make_plan",
    "run",
    "show_plan",
]
