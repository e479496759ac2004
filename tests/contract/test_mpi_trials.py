"""The contract of all backends for trials that `mpiexec` starts, by both implementations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract


class MpiContract(BackendContract):
    kind: str

    def make(self, context: BackendContext) -> Backend:
        return LocalBackend(Profile("local", "local"), context)

    def start(self, backend: Backend, home: Home, code: str, **spec: object) -> JobRef:
        python = Path(sys.prefix) / self.kind / "bin" / "python"
        if not (python.parent / "mpiexec").exists():
            pytest.skip(f"there is no {python.parent}/mpiexec: sh .ci/mpi makes it")
        environment = PythonEnvironment(EnvironmentKind.PYTHON, str(python))
        return super().start(backend, home, code, **{"launcher": "mpi", "python_environment": environment, **spec})


@pytest.mark.long  # `fault/test_launchers.py` starts and ends trials under MPI by default
class TestMpich(MpiContract):
    kind = "mpich"


@pytest.mark.long
class TestOpenMpi(MpiContract):
    kind = "openmpi"
