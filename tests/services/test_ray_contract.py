"""The contract of backends on a real Ray head."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.services.ray.backend import RayBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from tests.labs.ray_lab import RayLab


@pytest.mark.long
class TestRay(BackendContract):
    """A cluster of one node, as Ray itself runs it."""

    @pytest.fixture(autouse=True)
    def _on_ray(self, ray: RayLab) -> Iterator[None]:
        self.ray = ray
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()

    def make(self, context: BackendContext) -> Backend:
        options = {"address": self.ray.address, "python": sys.executable}
        backend = RayBackend(Profile("cluster", "ray", options), context)
        self.made.append(backend)
        return backend

    def is_gone(self, pid: int) -> bool:
        return self.ray.is_gone(pid)

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("Ray gives GPUs to its jobs, and this machine has none")


del BackendContract
