"""The contract of backends on a real Ray head."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.ray.backend import RayBackend
from jupyter_autotrain.backends.services.ray.requests_of_trials import names_of
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, NodesContract, trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS
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

    def test_a_cancel_of_a_job_that_waits_for_a_node_lets_its_trial_never_begin(
        self, backend: RayBackend, home: Home, tmp_path: Path
    ) -> None:
        holds = "print('begun', flush=True)\nimport time\nwhile not should_stop(): time.sleep(0.01)"
        first = self.start(backend, home, holds, resources=Resources(cpus=4))
        self.begun(backend, first)
        mark = tmp_path / "mark"
        code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()"
        second = backend.submit(trial_of(home, code, number=2, resources=Resources(cpus=4)), Placement(), {})
        assert wait_until(lambda: self.status(backend, second).reason, "a reason").startswith("waits in Ray for a node")
        receipt = backend.cancel(second, 1.0)
        assert self.status(backend, second).state is TrialState.CANCELLED
        assert receipt.note.startswith("Ray keeps it in its queue until it has a node for it")
        backend.put(first, wire.STOP_FILE, b"")
        assert self.finish(backend, first).state is TrialState.EARLY_STOPPED
        name = str(second.data["name"])
        wait_until(lambda: backend._service.states([second])[name].state.is_final, "the end of the job in Ray")
        assert not mark.exists()


@pytest.mark.long
class TestNodes(NodesContract):
    """A cluster of two nodes."""

    @pytest.fixture(autouse=True)
    def _on_ray(self, ray_of_two: RayLab) -> Iterator[None]:
        self.ray = ray_of_two
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()

    make = TestRay.make
    is_gone = TestRay.is_gone

    def test_a_lost_job_ends_the_trial(self, backend: RayBackend, home: Home) -> None:
        ref = self.start_on_nodes(backend, home, WAITS)
        self.all_begun(backend, ref)
        backend._service._stop(names_of(ref)[1])  # type: ignore[attr-defined]
        end = self.finish(backend, ref)
        assert end.state in {TrialState.PREEMPTED, TrialState.LOST}
        assert "node 1" in end.reason


del BackendContract, NodesContract
