"""Options that only profiles of Kubeflow's operators have."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.options import KubernetesOptions


class KubeflowOptions(KubernetesOptions):
    """Options of Kubeflow's operators, besides those of Kubernetes."""
