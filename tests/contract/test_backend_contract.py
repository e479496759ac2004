from __future__ import annotations

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.testing import BackendContract


class TestLocal(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(backends.profile("local"), context)


class TestDebug(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(backends.profile("debug"), context)
