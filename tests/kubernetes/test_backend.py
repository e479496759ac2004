"""The contract of all backends, on a cluster."""

from __future__ import annotations

from tests.kubernetes.cluster_contract import ClusterContract


class TestKubernetes(ClusterContract):
    """Plain Jobs, which every cluster has."""


del ClusterContract
