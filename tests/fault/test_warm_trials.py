"""Trials of this machine that begin from processes that run on: apart from each other, and none left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.trial.trial_file import TrialFile
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.fault.local_trials import directory_of, text
from tests.fault.warm_trials import cold_backend, end_warm, kill, said, start, warm_backend, warm_pids

pytestmark = pytest.mark.fault
WAITS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def backend(home: Home) -> Iterator[LocalBackend]:
    yield warm_backend(home)
    end_warm(home)


def test_one_process_begins_trials_of_several_experiments(backend: LocalBackend, home: Home) -> None:
    said(backend, home, "report(step=1, loss=0.5)", 1)
    before = warm_pids(home)
    assert len(before) == 1
    for number in (2, 3):
        said(backend, home, "report(step=1, loss=0.5)", number)
        assert warm_pids(home) == before


def test_trials_begin_at_the_same_time_from_one_process(backend: LocalBackend, home: Home) -> None:
    refs = [start(backend, home, WAITS, number) for number in (1, 2, 3)]
    wait_until(lambda: all(text(backend, ref) for ref in refs), "three trials")
    assert len(warm_pids(home)) == 1
    for ref in refs:
        assert backend.cancel(ref, 0.5).pids_left == ()


def test_a_process_that_waits_for_long_ends_and_leaves_nothing(home: Home) -> None:
    said(warm_backend(home, reuse_idle=0.2), home, "print(1)", 1)
    wait_until(lambda: not list(home.root.glob("warm/*/*")), "the end of the warm process, and of its folder")


def test_a_process_whose_home_is_removed_ends(home: Home) -> None:
    said(warm_backend(home, reuse_idle=600.0), home, "print(1)", 1)
    (pid,) = warm_pids(home)
    (home.root / "warm").rename(home.root / "elsewhere")
    for file in (home.root / "elsewhere").glob("*/socket"):
        file.unlink()
    wait_until(lambda: not processes.living({pid}), "the end of the warm process")


def test_a_secret_reaches_its_trial_and_no_other_process(backend: LocalBackend, home: Home) -> None:
    look = "import os\nprint(len(os.environ.get('TOKEN', '')))"
    assert said(backend, home, look, 1, secrets={"TOKEN": "xyzzy-12345"}) == "11\n"
    (pid,) = warm_pids(home)
    assert not any(b"xyzzy-12345" in part for part in _readable_memory(pid))
    assert said(backend, home, look, 2) == "0\n"
    files = [path.read_bytes() for path in (home.root / "warm").rglob("*") if path.is_file()]
    assert not any(b"xyzzy-12345" in content for content in files)


def _readable_memory(pid: int) -> Iterator[bytes]:
    """Yield the memory of a process that it may have written to."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        bounds, rights = line.split()[:2]
        if rights.startswith("rw"):
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            yield os.pread(memory, end - begin, begin)
    os.close(memory)


def test_what_a_trial_does_to_its_process_reaches_no_other(backend: LocalBackend, home: Home) -> None:
    poison = """
import builtins, os, random, sys, threading
random.seed(1)
os.chdir("/")
os.umask(0)
os.environ["POISON"] = "yes"
sys.path.insert(0, "/poison")
builtins.print = None
json = __import__("json")
json.loads = None
leaked = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    look = """
import builtins, json, os, random, sys, threading
print([os.getcwd(), os.environ.get("POISON"), "/poison" in sys.path, json.loads("1"), threading.active_count()])
print([oct(os.umask(0o77)), len(os.listdir("/proc/self/fd")), sorted(os.environ), sys.argv[1:], sys.flags])
"""
    before = said(backend, home, look, 1)
    said(backend, home, poison, 2)
    assert said(backend, home, look, 3).replace("e3", "e1") == before
    cold = cold_backend(home)
    assert said(cold, home, look, 4).replace("e4", "e1") == before


def test_chance_is_not_the_same_in_all_trials(backend: LocalBackend, home: Home) -> None:
    draw = "import random, tempfile, uuid\nprint(random.random(), uuid.uuid4(), tempfile.mktemp())"
    assert len({said(backend, home, draw, number) for number in (1, 2, 3)}) == 3


def test_what_python_does_at_the_end_of_a_program_is_done(backend: LocalBackend, home: Home) -> None:
    code = """
import atexit, threading, time
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
"""
    assert said(backend, home, code, 1) == "thread\nat exit\n"


def test_a_trial_goes_on_when_its_warm_process_is_killed_and_others_begin(backend: LocalBackend, home: Home) -> None:
    waits = "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)"
    ref = start(backend, home, waits, 1)
    wait_until(lambda: text(backend, ref), "the trial")
    (pid,) = warm_pids(home)
    kill(pid)
    assert said(backend, home, "print(2)", 2) == "2\n"
    (directory_of(home, trial_of(home, "", experiment_id="e1")) / "work" / "go").touch()
    assert wait_for_end(backend, ref).state is TrialState.SUCCEEDED


def test_a_trial_whose_supervisor_is_killed_is_lost_with_all_its_processes(backend: LocalBackend, home: Home) -> None:
    ref = start(backend, home, "import os\nif os.fork() == 0: os.setsid()\n" + WAITS, 1)
    wait_until(lambda: text(backend, ref).count("begun") == 2, "the trial")
    directory = str(directory_of(home, trial_of(home, "", experiment_id="e1")))
    (supervisor,) = processes.running("supervisor", directory)
    os.kill(supervisor, signal.SIGKILL)
    assert wait_for_end(backend, ref).state is TrialState.LOST
    wait_until(lambda: not processes.marked(wire.TRIAL_VARIABLE, directory), "the end of its processes")
    assert said(backend, home, "print(1)", 2) == "1\n"


def test_a_cancelled_trial_ends_with_what_it_has_detached_and_its_warm_process_goes_on(
    backend: LocalBackend, home: Home
) -> None:
    ref = start(backend, home, "import os\nif os.fork() == 0: os.setsid()\n" + WAITS, 1)
    wait_until(lambda: text(backend, ref).count("begun") == 2, "the trial")
    before = warm_pids(home)
    receipt = backend.cancel(ref, 0.5)
    assert receipt.pids_left == ()
    assert len({*receipt.pids_ended, *receipt.pids_killed}) == 2
    assert said(backend, home, "print(1)", 2) == "1\n"
    assert warm_pids(home) == before


def test_a_trial_begins_as_any_other_where_no_warm_process_comes_up(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_starts, "program", lambda part: ("/no/such/program", part))
    assert said(backend, home, "print(1)", 1) == "1\n"
    assert warm_pids(home) == []


def test_a_trial_begins_once_and_as_any_other_where_its_warm_process_is_paused(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_starts, "_BEGIN_S", 0.5)
    said(backend, home, "print(1)", 1)
    (pid,) = warm_pids(home)
    os.kill(pid, signal.SIGSTOP)
    assert said(backend, home, "print(2)", 2) == "2\n"
    os.kill(pid, signal.SIGCONT)
    assert said(backend, home, "print(3)", 3) == "3\n"


def test_trials_of_launchers_several_nodes_and_other_environments_begin_as_any_other() -> None:
    trial: TrialFile = {"workers": 1, "launcher": "env", "secrets": (), "python": "python3"}
    assert warm_starts.are_for(trial)
    assert warm_starts.are_for({**trial, "workers": 2})
    assert not warm_starts.are_for({**trial, "launcher": "torchrun"})
    assert not warm_starts.are_for({**trial, "layout": {"nodes": 2}})
    assert not warm_starts.are_for({**trial, "python_environment": {"kind": "requirements"}})
    assert not warm_starts.are_for({**trial, "options": {"reuse": False}})


def test_several_ranks_of_a_trial_are_forked_and_meet(backend: LocalBackend, home: Home) -> None:
    cell = """
import os, socket, time
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    print(socket.create_server(place).accept()[0].recv(100).decode(), flush=True)
while rank == 1:
    try:
        socket.create_connection(place).sendall(f"{rank} of {world_size}".encode())
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
"""
    for number in (1, 2):
        ref = start(backend, home, cell, number, resources=Resources(workers_per_node=2))
        end = wait_for_end(backend, ref)
        assert end.state is TrialState.SUCCEEDED, end.reason
        assert text(backend, ref) == "1 of 2\n"
    assert warm_pids(home)


def test_the_kernel_shows_the_processes_of_a_trial_as_in_any_start(backend: LocalBackend, home: Home) -> None:
    ref = start(backend, home, WAITS, 1)
    wait_until(lambda: text(backend, ref), "the trial")
    directory = str(directory_of(home, trial_of(home, "", experiment_id="e1")))
    (worker,) = processes.marked(wire.TRIAL_VARIABLE, directory)
    (supervisor,) = processes.running("supervisor", directory)
    assert psutil.Process(worker).ppid() == supervisor
    assert backend.cancel(ref, 0.5).pids_left == ()
