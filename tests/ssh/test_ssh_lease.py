"""Abandoned trials end when their lease is over, and go on without one; what is of one machine stays there."""

from __future__ import annotations

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import COUNTS, LabBackends, end, read_on, start, status, supervisors


def test_a_lease_ends_abandoned_trials_with_that_reason_and_leaves_nothing(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home, lease_s=3)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the start")
    backend.close()
    wait_until(lambda: not supervisors(host), "the end of the lease")
    last = status(make(home), ref)
    assert last.state is TrialState.CANCELLED
    assert "for 3 s" in last.reason
    assert "lease_s" in last.reason


def test_a_trial_with_a_lease_goes_on_while_a_manager_is_there(make: LabBackends, home: Home) -> None:
    backend = make(home, lease_s=9)
    ref = start(backend, home, COUNTS)
    seen = [b""]

    def has_outlived_its_lease() -> bool:
        seen[0] = read_on(backend, ref, wire.STDOUT, seen[0])
        return seen[0].count(b"\n") > 500  # a line takes at least 20 ms

    wait_until(has_outlived_its_lease, "five hundred lines")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED


def test_what_means_something_on_one_machine_only_does_not_travel(make: LabBackends, home: Home, host: LabHost) -> None:
    here = {
        "PATH": "/only/here", "HOME": "/home/here", "LD_LIBRARY_PATH": "/only/here", "VIRTUAL_ENV": "/only/here",
        "CONDA_PREFIX": "/only/here", "PYTHONPATH": "/only/here", "TMPDIR": "/only/here",
        "XDG_CACHE_HOME": "/only/here",
        "JUPYTER_DATA_DIR": "/only/here", "HF_HOME": "/only/here", "CUDA_VISIBLE_DEVICES": "7",
        "OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "5", "TZ": "Asia/Tokyo",
    }  # fmt: skip
    backend = make(home)
    shown = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONHASHSEED", "TZ", "SAID")
    code = "import os\nprint(sorted(n for n, v in os.environ.items() if 'only/here' in v), os.environ['HOME'])"
    code += f"\nprint(*[os.environ.get(name) for name in {shown}])"
    ref = start(backend, home, code, environment=here, env={"SAID": "/only/here/too"})
    assert end(backend, ref).state is TrialState.SUCCEEDED
    printed = read_on(backend, ref, wire.STDOUT, b"").decode().splitlines()
    assert printed[0] == f"['SAID'] {host.files.home(host.user)}"
    assert printed[1] == "None 3 5 Asia/Tokyo /only/here/too"
