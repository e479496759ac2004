"""The launchers, which start the ranks of a trial on a node, and the class of one by its name."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.agent.launchers.launchers import Launcher, PaddleLauncher, TensorflowLauncher, TorchrunLauncher
from jupyter_autotrain.agent.trial.rank_layout import RankLayout


def launcher_of(trial: Mapping[str, object], layout: RankLayout) -> Launcher:
    """Return the launcher that a trial names."""
    name = trial.get("launcher")
    if name == "mpi":
        from jupyter_autotrain.agent.launchers.mpi import MpiLauncher  # noqa: PLC0415 - only its trials pay

        return MpiLauncher(trial, layout)
    kinds = {"torchrun": TorchrunLauncher, "tensorflow": TensorflowLauncher, "paddle": PaddleLauncher}
    return kinds.get(str(name), Launcher)(trial, layout)
