"""Trials as AdaptDLJobs, which are rescaled while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.workloads.adaptdljob import AdaptDLJob
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import TrialSpec

if TYPE_CHECKING:
    from pydantic import BaseModel


class AdaptdlBackend(KubernetesBackend):
    """Runs each trial as an AdaptDLJob."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, and replicas."""
        from jupyter_autotrain.backends.kubernetes.options.adaptdl_options import AdaptdlOptions  # noqa: PLC0415 - pydantic is slow

        return AdaptdlOptions

    def workload_for(self, trial: TrialSpec, options: JsonObject) -> Workload:  # noqa: ARG002 - one kind
        """Return an AdaptDLJob."""
        return AdaptDLJob()

    def workload_of(self, ref: JobRef) -> Workload:  # noqa: ARG002 - one kind
        """Return an AdaptDLJob."""
        return AdaptDLJob()
