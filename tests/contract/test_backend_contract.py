from __future__ import annotations

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from tests.contract.copying_backend import CopyingBackend


class TestLocal(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(Profile("local", "local"), context)


class TestDebug(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(Profile("debug", "debug"), context)


class TestABackendWhoseTrialDirectoriesLieElsewhere(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        there = str(context.home.root.parent / "there")
        return CopyingBackend(Profile("there", "copying", {"root": there}), context)
