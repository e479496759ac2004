"""Trials as AdaptDLJobs, which are rescaled while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.workloads.adaptdljob import AdaptDLJob

if TYPE_CHECKING:
    from pydantic import BaseModel


class AdaptdlBackend(KubernetesBackend):
    """Runs each trial as an AdaptDLJob."""

    operator_workload = AdaptDLJob()

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, and replicas."""
        from jupyter_autotrain.backends.kubernetes.options.adaptdl_options import AdaptdlOptions  # noqa: PLC0415 - pydantic is slow

        return AdaptdlOptions
