"""A real Slurm cluster of two nodes, made once; every test runs in its network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labs import slurm_lab


@pytest.fixture(scope="session")
def the_cluster() -> Iterator[slurm_lab.SlurmLab]:
    reason = slurm_lab.missing()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="at-slurm-"))  # short: sockets lie in it
    cluster = slurm_lab.SlurmLab(folder)
    yield cluster
    cluster.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(the_cluster: slurm_lab.SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[slurm_lab.SlurmLab]:
    """Yield the cluster as new: all daemons up, no job."""
    monkeypatch.setenv("SLURM_CONF", str(the_cluster.config))
    with the_cluster.inside():
        yield the_cluster
    the_cluster.clear()
