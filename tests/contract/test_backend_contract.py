from __future__ import annotations

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import BackendContract


class TestLocal(BackendContract):
    def make(self, home: Home) -> Backend:
        return backends.create("local", home)


class TestDebug(BackendContract):
    def make(self, home: Home) -> Backend:
        return backends.create("debug", home)
