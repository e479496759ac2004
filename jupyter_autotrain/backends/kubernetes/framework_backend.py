"""Trials as Frameworks of FrameworkController."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.workloads.framework import Framework
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import TrialSpec

if TYPE_CHECKING:
    from pydantic import BaseModel


class FrameworkBackend(KubernetesBackend):
    """Runs each trial as a Framework."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, task roles and retries."""
        from jupyter_autotrain.backends.kubernetes.options.framework_options import FrameworkOptions  # noqa: PLC0415 - pydantic is slow

        return FrameworkOptions

    def workload_for(self, trial: TrialSpec, options: JsonObject) -> Workload:  # noqa: ARG002 - one kind
        """Return a Framework."""
        return Framework()

    def workload_of(self, ref: JobRef) -> Workload:  # noqa: ARG002 - one kind
        """Return a Framework."""
        return Framework()
