"""Options that only profiles of FrameworkController have."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.options import KubernetesOptions


class FrameworkOptions(KubernetesOptions):
    """Options of FrameworkController, besides those of Kubernetes."""
