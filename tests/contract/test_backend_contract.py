from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from tests.contract import cron_backend
from tests.contract.copying_backend import CopyingBackend
from tests.contract.cron_backend import CronBackend

CRON_S = 0.02  # a minute, in tests


class TestLocal(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(Profile("local", "local", {"reuse": False}), context)


class TestLocalFromProcessesThatRunOn(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(Profile("local", "local", {"reuse_idle": 0.5}), context)


class TestDebug(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return backends.create(Profile("debug", "debug"), context)


class TestABackendWhoseTrialDirectoriesLieElsewhere(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        there = str(context.home.root.parent / "there")
        return CopyingBackend(Profile("there", "copying", {"root": there}), context)


@pytest.mark.long  # by default the one above stands for backends of others
# --8<-- [start:cron]
class TestAFolderThatACronJobEmpties(BackendContract):
    """The example of a backend that somebody else writes, with a cron job that comes often."""

    @pytest.fixture(autouse=True)
    def cron(self, home: Home) -> Iterator[None]:
        folder = home.root.parent / "waiting"
        folder.mkdir()
        ends = threading.Event()

        def run() -> None:
            while not ends.wait(CRON_S):
                cron_backend.run_waiting(folder)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        ends.set()
        thread.join()

    def make(self, context: BackendContext) -> Backend:
        folder = str(context.home.root.parent / "waiting")
        return CronBackend(Profile("cron", "cron", {"folder": folder}), context)


# --8<-- [end:cron]
