"""Trials as Frameworks of FrameworkController."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.workloads.framework import Framework

if TYPE_CHECKING:
    from pydantic import BaseModel


class FrameworkBackend(KubernetesBackend):
    """Runs each trial as a Framework."""

    operator_workload = Framework()

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, task roles and retries."""
        from jupyter_autotrain.backends.kubernetes.options.framework_options import FrameworkOptions  # noqa: PLC0415 - pydantic is slow

        return FrameworkOptions
