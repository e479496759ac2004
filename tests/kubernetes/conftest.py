"""A cluster of two nodes on this machine, made once; every test begins with it empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from tests.kubernetes import real_cluster
from tests.kubernetes.api.conftest import client_of
from tests.labs.kubernetes import cluster as clusters


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
    """Yield the cluster as new; at the end its controllers must have made no fault."""
    the_cluster.loop.errors.clear()
    yield the_cluster
    errors = [*the_cluster.loop.errors]
    the_cluster.clear()
    assert errors == []


@pytest.fixture(scope="session")
def real_kubeconfig(pytestconfig: pytest.Config) -> Path:
    """Return the kubeconfig of a cluster whose nodes have the image of the trials."""
    path = real_cluster.kubeconfig_of_environment(pytestconfig)
    with client_of(path) as api:
        real_cluster.pull_image(client.CoreV1Api(api), real_cluster.trial_options())
    return path
