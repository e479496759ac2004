"""The backend contract, third part: failures, limits, secrets, cancelling."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing.bundles import trial_of
from jupyter_autotrain.testing.harness import WAITS, BackendHarness

# A tree that fights back: a child, a grandchild with a session of its own whose parent is gone; all ignore SIGTERM.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "a").write(f"{os.getpid()} ")
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
    open("pids", "a").write(f"{os.getpid()} ")
    time.sleep(1000)
while len(open("pids").read().split()) < 3:
    time.sleep(0.01)
print("begun", flush=True)
time.sleep(1000)
"""


class EndingContract(BackendHarness):
    """The contract of every backend about a trial that ends badly, or is ended."""

    def test_an_exception_is_told_with_the_line_of_the_cell(self, backend: Backend, home: Home) -> None:
        _, status = self.run(backend, home, "def f(x):\n    return 1 / x\nf(0)")
        assert status.state is TrialState.FAILED
        assert "ZeroDivisionError" in status.reason
        assert "cell 1, line 2: `return 1 / x`" in status.reason
        assert "jupyter_autotrain" not in str(status.detail["traceback"])

    def test_a_missing_package_is_told_with_the_command_that_brings_it(self, backend: Backend, home: Home) -> None:
        _, status = self.run(backend, home, "import no_such_package_here.deep")
        assert status.state is TrialState.FAILED
        assert "pip install no_such_package_here" in status.reason

    def test_an_objective_that_is_never_reported_fails_the_trial(self, backend: Backend, home: Home) -> None:
        _, status = self.run(backend, home, "report(loss=1)", objective="val_acc")
        assert status.state is TrialState.FAILED
        assert "'val_acc' was never reported" in status.reason
        assert "loss" in status.reason

    def test_an_objective_that_could_not_be_kept_fails_the_trial_with_a_reason(
        self, backend: Backend, home: Home
    ) -> None:
        _, status = self.run(backend, home, "report(loss=1e999)", objective="loss")
        assert status.state is TrialState.FAILED
        assert "'loss' could be kept: loss is inf" in status.reason

    def test_exit_0_is_no_failure_and_exit_3_is_one(self, backend: Backend, home: Home) -> None:
        _, well = self.run(backend, home, "import sys\nsys.exit(0)", experiment_id="well")
        _, badly = self.run(backend, home, "import sys\nsys.exit(3)", experiment_id="badly")
        assert (well.state, badly.state) == (TrialState.SUCCEEDED, TrialState.FAILED)
        assert badly.detail["exit_code"] == 3

    def test_a_crash_of_native_code_is_told_by_its_signal(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        _, status = self.run(backend, home, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
        assert status.state is TrialState.FAILED
        assert "SIGSEGV" in status.reason

    def test_the_time_limit_ends_the_trial_and_is_the_reason(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        _, status = self.run(backend, home, WAITS, timeout_s=0.3)
        assert status.state is TrialState.FAILED
        assert "Timeout" in status.reason
        assert "0.3 s" in status.reason

    def test_too_much_memory_ends_the_trial_and_is_the_reason(self, backend: Backend, home: Home) -> None:
        if not backend.capabilities.limits_memory:
            pytest.skip("this backend keeps no memory limit")
        code = "import time\nblocks = [bytearray(b'x') * (10 << 20) for _ in range(60)]\ntime.sleep(1000)"
        _, status = self.run(backend, home, code, resources=Resources(memory_bytes=100_000_000))
        assert status.state is TrialState.FAILED
        assert "Out of memory" in status.reason
        assert "100 MB" in status.reason
        assert "memory 100 MB" in str(status.detail["limits"])

    def test_the_cpu_limit_acts(self, backend: Backend, home: Home) -> None:
        if not backend.capabilities.limits_cpu:
            pytest.skip("this backend keeps no CPU limit")
        code = """
            import threading, time, zlib
            def burn(until):
                while time.monotonic() < until: zlib.compress(b"x" * 100_000)
            until = time.monotonic() + 1.0
            others = [threading.Thread(target=burn, args=(until,)) for _ in range(2)]
            began = time.process_time()
            for other in others: other.start()
            for other in others: other.join()
            report(cpu=time.process_time() - began)
        """
        ref, status = self.run(backend, home, code, resources=Resources(cpus=1.0))
        if "cpus 1 not limited" in str(status.detail.get("limits")):
            pytest.skip("CPUs cannot be limited on this machine")
        used = self.points(backend, ref)[0][1]["cpu"]
        assert used is not None
        assert used < 1.25

    def test_secrets_reach_the_cell_and_nothing_else(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        value = "s3cr3t-t0ken-0123456789"
        code = """
            import base64, os, sys
            key = os.environ["API_KEY"]
            print(len(key)); print("key:", key); sys.stderr.write(key[:10]); sys.stderr.flush()
            sys.stderr.write(key[10:] + base64.b64encode(key.encode()).decode())
            raise ValueError(key)
        """
        trial = trial_of(home, code, secrets=("API_KEY",))
        if not backend.capabilities.secrets:
            with pytest.raises(BackendError):
                backend.submit(trial, Placement(), {"API_KEY": value})
            return
        ref = backend.submit(trial, Placement(), {"API_KEY": value})
        assert value not in str(self.finish(backend, ref))
        assert self.read(backend, ref, wire.STDOUT) == f"{len(value)}\nkey: ***\n".encode()
        kept = self.left_by(backend, ref, tmp_path / "left")
        kept |= {str(path): path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
        for form in (value.encode(), base64.b64encode(value.encode())):
            assert [path for path, data in kept.items() if form in data] == []

    def test_cancel_ends_the_whole_tree_and_proves_it(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        self.needs_background(backend)
        ref, pids = self._stubborn(backend, home, tmp_path)
        receipt = self.make(BackendContext(home)).cancel(ref, 0.1)
        assert all(map(self.is_gone, pids))
        assert set(pids) <= set(receipt.pids_killed)
        assert receipt.pids_left == ()
        assert 0.1 <= receipt.elapsed_s < 60
        assert self.status(backend, ref).state is TrialState.CANCELLED

    def _stubborn(self, backend: Backend, home: Home, tmp_path: Path) -> tuple[JobRef, list[int]]:
        ref = self.start(backend, home, STUBBORN)
        self.begun(backend, ref)
        return ref, list(map(int, self.fetched(backend, ref, "work/pids", tmp_path / "pids").split()))

    def test_cancel_lets_a_polite_trial_end_itself(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        begun = time.monotonic()
        receipt = backend.cancel(ref, 120.0)
        assert time.monotonic() - begun < 100
        assert receipt.pids_ended
        assert receipt.pids_killed == ()

    def test_cancelling_twice_is_cancelling_once(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, WAITS)
        first = backend.cancel(ref, 1.0)
        second = backend.cancel(ref, 1.0)
        assert (first.pids_left, second.pids_left) == ((), ())
        assert "ended before" in second.note
        assert self.status(backend, ref).state is TrialState.CANCELLED

    def test_cancelling_what_has_ended_changes_nothing(self, backend: Backend, home: Home) -> None:
        ref, before = self.run(backend, home, "")
        assert "ended before" in backend.cancel(ref, 1.0).note
        assert self.status(backend, ref) == before

    def test_cancelling_what_never_was_is_no_error(self, backend: Backend) -> None:
        ref = JobRef(backend.name, "nobody-1-1")
        assert "never started" in backend.cancel(ref, 1.0).note

    def test_processes_cut_loose_by_a_cell_do_not_outlive_it(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        code = "import subprocess\nprint(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)"
        ref, status = self.run(backend, home, code)
        assert status.state is TrialState.SUCCEEDED
        assert self.is_gone(int(self.read(backend, ref, wire.STDOUT)))

    def test_a_signal_to_the_starters_group_does_not_reach_a_trial(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, "import os\nprint(os.getsid(0), flush=True)\n" + WAITS)
        self.begun(backend, ref)
        session = int(self.read(backend, ref, wire.STDOUT).split()[0])
        assert session != os.getsid(0)
        backend.cancel(ref, 1.0)
