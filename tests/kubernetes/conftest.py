"""A cluster of two nodes on this machine, made once; every test begins with it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_autotrain.testing.kubernetes import cluster as clusters
from tests.kubernetes.cluster_contract import Target, any_cluster


@pytest.fixture(scope="session")
def the_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.KubernetesLab]:
    reason = clusters.missing()
    if reason:
        pytest.skip(reason)
    lab = clusters.KubernetesLab(tmp_path_factory.mktemp("cluster"))
    yield lab
    lab.close()


@pytest.fixture
def cluster(the_cluster: clusters.KubernetesLab) -> Iterator[clusters.KubernetesLab]:
    """The cluster as new; at the end its controllers must have made no fault."""
    the_cluster.loop.errors.clear()
    yield the_cluster
    errors = [*the_cluster.loop.errors]
    the_cluster.clear()
    assert errors == []


@pytest.fixture(scope="session")
def of_kubeconfig() -> Iterator[Target]:
    """The cluster that KUBECONFIG names."""
    with any_cluster() as target:
        yield target
