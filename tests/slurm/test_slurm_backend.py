"""The contract of all backends, on a real cluster."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, trial_of
from tests.labs.slurm_lab import SlurmLab


class TestSlurm(BackendContract):
    @pytest.fixture(autouse=True)
    def _cluster(self, cluster: SlurmLab) -> None:
        self.cluster = cluster

    def make(self, context: BackendContext) -> Backend:
        return SlurmBackend(Profile("cluster", "slurm"), context)

    def is_gone(self, pid: int) -> bool:
        return self.cluster.is_gone(pid)

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])"
        ref = backend.submit(trial_of(home, code, resources=Resources(gpus=2)), Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"0,1\n"
