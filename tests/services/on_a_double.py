"""What the tests of services with a shared storage have in common: a double, backends on it, and its faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError
from jupyter_autotrain.testing import trial_of, wait_until
from jupyter_autotrain.testing.harness import BackendHarness
from tests.labs.service_double import ServiceDouble
from tests.labs.service_jobs import JobRunner

WAITS = "print('begun', flush=True)\nimport time\nwhile not should_stop(): time.sleep(0.01)"


class OnADouble(BackendHarness):
    """Backends on one double, whose storage this machine has mounted under another path.

    Attributes:
        backend_type: Of the backends.
        double: The service.
        storage: The storage as this machine has it.
        mounted: The same one as jobs have it.
        login: The file with credentials.
    """

    backend_type: type[ServiceBackend]
    double: ServiceDouble

    @pytest.fixture(autouse=True)
    def _double(self, tmp_path: Path) -> Iterator[None]:
        self.storage = tmp_path / "storage"
        self.storage.mkdir()
        self.mounted = tmp_path / "mounted"
        self.mounted.symlink_to(self.storage)
        self.login = tmp_path / "login"
        self.double = self.make_double(JobRunner(tmp_path / "jobs"))
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()
        self.double.close()

    def make_double(self, runner: JobRunner) -> ServiceDouble:
        """Return the service; write the file with credentials."""
        raise NotImplementedError

    def options(self) -> JsonObject:
        """Return the options of a profile for it."""
        raise NotImplementedError

    @property
    def shared_storage(self) -> JsonObject:
        """Return the option `storage`."""
        return {"local_path": str(self.storage), "mount_path": str(self.mounted)}

    def make(self, context: BackendContext) -> Backend:
        backend = self.backend_type(Profile("lab", "lab", self.options()), context)
        backend._service.pause_s = 0.1
        backend._service.settle_s = 0.5
        self.made.append(backend)
        return backend


class ServiceFaults(OnADouble):
    """Tests of what is made of faults that each service has.

    Attributes:
        wait_30_s: The header by which it asks to be left alone for so long.
    """

    wait_30_s = MappingProxyType({"Retry-After": "30"})

    def expire_login(self) -> None:
        """Have the service take other credentials than those of the file."""
        raise NotImplementedError

    def renew_login(self) -> None:
        """Have it take those of the file again."""
        raise NotImplementedError

    def test_a_submit_whose_answer_was_lost_starts_once(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "print('ran')")
        self.double.loses_answers = True
        with pytest.raises(SubmitUnknownError):
            backend.submit(trial, Placement(), {})
        self.double.loses_answers = False
        ref = self.make(BackendContext(home)).submit(trial, Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"
        assert len(self.double.runner.started) == 1

    def test_a_login_that_expires_is_a_doubt_until_it_is_renewed(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        self.expire_login()
        told = wait_until(lambda: self.status(backend, ref).doubt, "a doubt")
        assert "answers 40" in told
        self.renew_login()
        wait_until(lambda: not self.status(backend, ref).doubt, "the login")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED

    @pytest.mark.parametrize(
        ("code", "kind", "text"),
        [
            (401, BackendError, "answers 401"),
            (403, BackendError, "answers 403"),
            (429, BackendUnavailableError, "asks to wait 30 s"),
            (503, BackendUnavailableError, "answers 503"),
        ],
    )
    def test_refusals_of_a_submit_start_nothing(
        self, backend: Backend, home: Home, code: int, kind: type[Exception], text: str
    ) -> None:
        headers = self.wait_30_s if code == 429 else {}
        with self.double.refusing(code, headers), pytest.raises(kind, match=text):
            self.start(backend, home, "")
        assert self.double.runner.started == []


del BackendHarness
