"""Stand-ins for libraries that a trial's code reports to, where they are not installed: nni, ray, wandb.

Code written for them runs unmodified as a trial: its parameters are the trial's, and what it reports is the trial's.
Only what such code calls inside a trial is there. An installed library is always preferred.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent.ranks import api

TYPE_CHECKING = False  # every trial imports this module
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
NAMES = ("nni", "ray", "wandb")


def report_numbers(values: Mapping[str, Any], step: object = None) -> None:
    """Report the values that are numbers; `step` may be among them."""
    named = {str(name): value for name, value in values.items() if not isinstance(value, (str, dict, list, tuple))}
    named.pop("all_ranks", None)
    among = named.pop("step", None)
    step = among if step is None else step
    api.report(step if isinstance(step, int) else None, **named)


class StandInFinder:
    """The last finder of a trial: it finds a stand-in for what no other has found."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the contract of finders
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the stand-in's spec; None for any other module."""
        if fullname not in NAMES:
            return None
        from importlib.machinery import PathFinder  # noqa: PLC0415 - only trials that need a stand-in pay

        return PathFinder.find_spec(fullname, [FOLDER], target)
