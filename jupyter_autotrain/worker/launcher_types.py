"""From the name of a launcher to its class."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.worker.launchers import Launcher, PaddleLauncher, TensorflowLauncher
from jupyter_autotrain.worker.rank_layout import RankLayout


def launcher_of(trial: Mapping[str, object], layout: RankLayout) -> Launcher:
    """The launcher that a trial names."""
    name = trial.get("launcher")
    if name == "torchrun":
        from jupyter_autotrain.worker.torchrun import TorchrunLauncher  # noqa: PLC0415 - only its trials pay

        return TorchrunLauncher(trial, layout)
    if name == "mpi":
        from jupyter_autotrain.worker.mpi import MpiLauncher  # noqa: PLC0415 - only its trials pay

        return MpiLauncher(trial, layout)
    kinds = {"tensorflow": TensorflowLauncher, "paddle": PaddleLauncher}
    return kinds.get(str(name), Launcher)(trial, layout)
