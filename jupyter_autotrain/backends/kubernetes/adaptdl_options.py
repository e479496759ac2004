"""Options that only profiles of AdaptDL have."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.options import KubernetesOptions


class AdaptdlOptions(KubernetesOptions):
    """Options of AdaptDL, besides those of Kubernetes."""
