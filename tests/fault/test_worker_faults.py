"""Kills at random points, limits with and without cgroups, trees that fight back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.service import cancelling, starting, warm_starts
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import cgroup_setup, processes
from jupyter_autotrain.agent.system.cgroups import CgroupLimits
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources, TrialSpec
from jupyter_autotrain.testing import trial_of, wait_until
from tests.fault.local_trials import begun, finish, has_ended, remove, status, text

pytestmark = pytest.mark.fault

COUNTS = """
import subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("begun", child.pid, flush=True)
step = 0
while True:
    report(step=step, loss=1 / (step + 1))
    step += 1
    time.sleep(0.001)
"""


def local(home: Home) -> LocalBackend:
    return LocalBackend(Profile("local", "local"), BackendContext(home))


def directory_of(home: Home, trial: TrialSpec) -> Path:
    return BackendContext(home).directory(trial)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def backend(home: Home) -> LocalBackend:
    return local(home)


@pytest.fixture
def without_cgroups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Simulate a machine where no cgroup can be made: the supervisor is started through a shim that hides them."""
    shim = tmp_path / "shim.py"
    shim.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(processes.__file__).parents[3])!r})
        from jupyter_autotrain.agent.system import cgroup_setup
        from jupyter_autotrain.agent.supervisor import supervisor_main
        create = cgroup_setup.create
        cgroup_setup.create = lambda wanted: create(wanted, mountinfo="", own="")
        supervisor_main.main(sys.argv[1])
        """)
    )
    run = starting._run
    monkeypatch.setattr(starting, "_run", lambda argv, env: run([*argv[:-3], str(shim), argv[-1]], env))
    monkeypatch.setattr(warm_starts, "are_for", lambda _trial, **_options: False)


def pid_of(backend: LocalBackend, ref: JobRef, who: str) -> int:
    process = wait_until(lambda: status(backend, ref).detail.get(who), f"the {who}")
    return int(process[0])  # type: ignore[index, arg-type]


def nothing_left(trial_directory: str) -> bool:
    return not processes.marked(wire.TRIAL_VARIABLE, trial_directory)


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_killed_at_any_moment_fails_and_loses_no_metric(backend: LocalBackend, home: Home, seed: int) -> None:
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    worker = pid_of(backend, ref, "worker")
    time.sleep(random.Random(seed).uniform(0, 0.4))  # the moment is the point
    os.kill(worker, signal.SIGKILL)
    end = finish(backend, ref)
    assert (end.state, end.detail["signal"]) == (TrialState.FAILED, 9)
    assert "SIGKILL" in end.reason
    frames = [json.loads(line) for line in text(backend, ref, wire.METRICS).splitlines()][1:]
    assert [frame[1] for frame in frames] == list(range(len(frames)))
    assert nothing_left(str(directory_of(home, trial)))


@pytest.mark.parametrize("seed", range(3))
def test_a_supervisor_killed_at_any_moment_takes_its_worker_along_and_the_job_is_lost(
    backend: LocalBackend, home: Home, seed: int
) -> None:
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    supervisor = pid_of(backend, ref, "supervisor")
    if seed:
        begun(backend, ref)
        time.sleep(random.Random(seed).uniform(0, 0.2))  # the moment is the point
    worker = ProcessIdentity.from_json(status(backend, ref).detail.get("worker"))
    os.kill(supervisor, signal.SIGKILL)
    end = finish(backend, ref)
    assert end.state is TrialState.LOST
    assert "supervisor was killed" in end.reason
    wait_until(lambda: worker is None or not worker.is_alive(), "the worker's death")
    assert nothing_left(str(directory_of(home, trial)))
    assert not [folder for folder in end.detail.get("groups", ()) if Path(str(folder)).exists()]  # type: ignore[union-attr]
    assert local(home).submit(trial, Placement(), {}) == ref
    assert status(backend, ref) == end


def test_groups_of_a_maker_that_was_killed_are_swept_and_those_of_the_living_stay() -> None:
    code = """if True:
        from jupyter_autotrain.agent.system.cgroup_setup import create
        from jupyter_autotrain.agent.system.cgroups import CgroupLimits
        print(*create(CgroupLimits(None, None, 9)).paths(), flush=True)
    """
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mine = cgroup_setup.create(CgroupLimits(None, None, 9))
    if not mine.paths():
        pytest.skip("no writable cgroup on this machine")
    cgroup_setup.remove_stale()
    assert [Path(path).exists() for path in killed.stdout.split()] == [False]
    assert all(Path(path).exists() for path in mine.paths())
    mine.remove()


def test_a_job_whose_starter_was_killed_goes_on(backend: LocalBackend, home: Home) -> None:
    trial = trial_of(home, COUNTS)
    code = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(processes.__file__).parents[3])!r})
        from pathlib import Path
        from jupyter_autotrain.backends.local import LocalBackend
        from jupyter_autotrain.core.backend import BackendContext
        from jupyter_autotrain.core.profile import Profile
        from jupyter_autotrain.core.home import Home
        from jupyter_autotrain.core.spec import Placement
        from jupyter_autotrain.testing import trial_of
        home = Home(Path({str(home.root)!r}))
        backend = LocalBackend(Profile("local", "local"), BackendContext(home))
        backend.submit(trial_of(home, ""), Placement(), {{}})
        os.killpg(0, signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], start_new_session=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    assert text(backend, ref).count("begun") == 1
    before = len(text(backend, ref, wire.METRICS))
    wait_until(lambda: len(text(backend, ref, wire.METRICS)) > before, "more metrics")
    backend.cancel(ref, 1.0)
    assert nothing_left(str(directory_of(home, trial)))


def test_a_supervisor_asked_to_end_by_the_machine_says_preempted(backend: LocalBackend, home: Home) -> None:
    ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
    begun(backend, ref)
    os.kill(pid_of(backend, ref, "supervisor"), signal.SIGTERM)
    end = finish(backend, ref)
    assert end.state is TrialState.PREEMPTED


STOPS_ITS_SUPERVISOR = """
import json, os, pathlib, signal, time
while (status := json.loads(pathlib.Path("../status.json").read_text()))["state"] != "RUNNING":
    time.sleep(0.01)  # a supervisor that is stopped before could not say that the trial runs
supervisor = status["supervisor"][0]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("begun", flush=True)
while True:
    os.kill(supervisor, signal.SIGSTOP)
    time.sleep({pause_s})
"""


@pytest.mark.parametrize("pause_s", [1000, 0.0001])
def test_a_trial_that_stops_its_supervisor_is_ended_at_once_and_the_receipt_says_so(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch, pause_s: float
) -> None:
    monkeypatch.setattr(cancelling, "_STUCK_S", 1000.0)  # what a supervisor may take that only seems stuck
    trial = trial_of(home, STOPS_ITS_SUPERVISOR.format(pause_s=pause_s))
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    supervisor = pid_of(backend, ref, "supervisor")
    wait_until(lambda: system.look(supervisor).is_stopped, "the supervisor is stopped")
    worker = pid_of(backend, ref, "worker")
    begun_s = time.monotonic()
    receipt = backend.cancel(ref, 0.2)
    assert time.monotonic() - begun_s < 240
    # Between two stops the supervisor may send the signal itself, which this receipt does not know.
    assert worker in {*receipt.pids_killed, *receipt.pids_ended}
    assert receipt.pids_left == ()
    assert nothing_left(str(directory_of(home, trial)))
    assert status(backend, ref).state is TrialState.CANCELLED


BOMB = """
import os, time
print("begun", flush=True)
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""


def test_a_trial_whose_directory_is_deleted_ends_with_its_whole_tree(backend: LocalBackend, home: Home) -> None:
    ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
    begun(backend, ref)
    said = json.loads((Path(str(ref.data["directory"])) / wire.STATUS_FILE).read_text())
    found = [ProcessIdentity.from_json(said[name]) for name in ("supervisor", "worker")]
    identities = [identity for identity in found if identity is not None]
    assert len(identities) == 2
    child = int(text(backend, ref).split()[1])
    remove(home)
    wait_until(lambda: not any(identity.is_alive() for identity in identities), "the end of the trial")
    assert has_ended(child)


def test_a_fork_bomb_is_bounded_and_ended(backend: LocalBackend, home: Home) -> None:
    if "process count by cgroup" not in str(
        finish(backend, backend.submit(trial_of(home, ""), Placement(), {})).detail["limits"]
    ):
        pytest.skip("no writable pids cgroup on this machine")
    trial = trial_of(home, "", number=2, options={"max_processes": 40})
    (home.bundle("e1") / "main.py").write_text(BOMB)
    ref = backend.submit(trial, Placement(), {})
    wait_until(lambda: len(processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial)))) >= 20, "the bomb")
    assert len(processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial)))) <= 40
    receipt = backend.cancel(ref, 0.2)
    assert receipt.pids_left == ()
    assert nothing_left(str(directory_of(home, trial)))


@pytest.mark.usefixtures("without_cgroups")
def test_without_cgroups_memory_is_limited_by_polling_and_the_status_says_so(backend: LocalBackend, home: Home) -> None:
    code = "import time\nblocks = []\nwhile True: blocks.append(bytearray(b'x') * (5 << 20)); time.sleep(0.01)"
    trial = trial_of(home, code, resources=Resources(memory_bytes=150_000_000, cpus=1.0))
    end = finish(backend, backend.submit(trial, Placement(), {}))
    assert end.state is TrialState.FAILED
    assert "Out of memory" in end.reason
    assert "150 MB" in end.reason
    cpus = "by pinning to 1 CPUs" if system.CAN_PIN else "not limited"
    assert end.detail["limits"] == f"memory 150 MB by polling; cpus 1 {cpus}; process count not limited"


@pytest.mark.usefixtures("without_cgroups")
def test_without_cgroups_a_stubborn_tree_is_found_and_ended(backend: LocalBackend, home: Home) -> None:
    from jupyter_autotrain.testing.ending import STUBBORN

    trial = trial_of(home, STUBBORN)
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    receipt = backend.cancel(ref, 0.1)
    assert len(receipt.pids_killed) == 3
    assert nothing_left(str(directory_of(home, trial)))


LINES = 200_000


def test_many_printed_lines_neither_hurt_nor_get_lost(backend: LocalBackend, home: Home) -> None:
    code = f"for k in range({LINES}): print(k)\nreport(done=1)"
    trial = trial_of(home, code)
    end = finish(backend, backend.submit(trial, Placement(), {}))
    assert end.state is TrialState.SUCCEEDED
    with (directory_of(home, trial) / wire.STDOUT).open("rb") as file:
        assert sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) == LINES
    assert int(end.detail["peak_memory_bytes"]) < 60_000_000  # type: ignore[arg-type]


def test_many_lines_pass_the_redactor_too(backend: LocalBackend, home: Home) -> None:
    code = f"import os\nfor k in range({LINES}): print(k)\nprint(os.environ['KEY'])"
    trial = trial_of(home, code, secrets=("KEY",))
    end = finish(backend, backend.submit(trial, Placement(), {"KEY": "hunter2-hunter2"}))
    assert end.state is TrialState.SUCCEEDED
    said = (directory_of(home, trial) / wire.STDOUT).read_bytes()
    assert said.count(b"\n") == LINES + 1
    assert said.endswith(f"{LINES - 1}\n***\n".encode())


def test_a_child_that_runs_on_to_the_cells_end_does_not_speak_for_the_trial(backend: LocalBackend, home: Home) -> None:
    code = "import os, time\nchild = os.fork()\nif child: os.waitpid(child, 0); raise ValueError('the parent failed')"
    end = finish(backend, backend.submit(trial_of(home, code), Placement(), {}))
    assert end.state is TrialState.FAILED
    assert "the parent failed" in end.reason


def test_an_interrupt_meant_for_a_kernel_does_not_end_a_trial(backend: LocalBackend, home: Home) -> None:
    ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
    begun(backend, ref)
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(pid_of(backend, ref, "supervisor"), number)
    before = len(text(backend, ref, wire.METRICS))
    wait_until(lambda: len(text(backend, ref, wire.METRICS)) > before, "more metrics")
    assert status(backend, ref).state is TrialState.RUNNING
    backend.cancel(ref, 1.0)


def test_a_cell_may_await_at_top_level(backend: LocalBackend, home: Home) -> None:
    ref = backend.submit(trial_of(home, "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')"), Placement(), {})
    assert finish(backend, ref).state is TrialState.SUCCEEDED
    assert text(backend, ref) == "awaited\n"
