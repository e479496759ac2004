"""The real manager process with real local trials: killed, doubled, left alone."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import ManagerError
from jupyter_autotrain.manager import start
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.testing import wait_until
from tests.fault.local_trials import has_ended

pytestmark = pytest.mark.fault
until = wait_until

COUNTING = """
    import time
    for step in range(40):
        report(step=step, acc=step)
        time.sleep(0.02)
"""


def test_a_manager_killed_at_random_loses_nothing_and_doubles_nothing(served):
    chance = random.Random(7)
    served.submit("e1", COUNTING, trials=6, concurrency=2, objective=Objective("acc"))
    for _ in range(5):
        pause = time.monotonic() + chance.uniform(0.0, 0.5)
        until(lambda pause=pause: time.monotonic() > pause, "the moment to kill")
        served.kill()
        manager.ensure(served.home)
    until(lambda: served.store.experiment("e1").state.is_final, "the end of the experiment")
    assert served.states("e1") == ["SUCCEEDED"] * 6
    seen = [(p.number, p.attempt, p.step) for p in served.store.points("e1")]
    assert sorted(seen) == [(number, 1, step) for number in range(1, 7) for step in range(40)]
    served.kill()
    until(lambda: not served.processes(), "nothing is left")


def test_two_clients_at_once_get_one_manager(served):
    code = (
        "import sys; from pathlib import Path; from jupyter_autotrain import manager; "
        "from jupyter_autotrain.core.home import Home; print(manager.ensure(Home(Path(sys.argv[1]))).pid)"
    )
    argv = [sys.executable, "-c", code, str(served.home.root)]
    clients = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    pids = {client.communicate()[0] for client in clients}
    assert len(pids) == 1
    until(lambda: served.processes() == [int(*pids)], "the manager is alone")


def test_an_idle_manager_goes_by_itself_and_the_next_submit_starts_another(served, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "0.005")
    first = manager.ensure(served.home)
    until(lambda: not first.alive, "the idle exit")
    assert not served.home.wakeup_socket.exists()
    assert not manager.status(served.home).alive
    served.submit("e1", "report(acc=1)")
    until(lambda: served.states("e1") == ["SUCCEEDED"], "the trial's end")


def killed_as_it_starts(monkeypatch, times):
    """Kill the first managers before they can say who they are; return how many were started."""
    spawn = start._spawn
    started = []

    def spawn_and_kill(home):
        started.append(spawn(home))
        if len(started) <= times:
            for process in psutil.process_iter(["cmdline"]):
                if (process.info["cmdline"] or [""])[-1] == str(home.root.absolute()):
                    process.kill()
            until(lambda: start._is_free(home), "the lock goes with the manager")
        return started[-1]

    monkeypatch.setattr(start, "_spawn", spawn_and_kill)
    return started


def test_a_manager_that_is_killed_as_it_starts_is_started_again(served, monkeypatch):
    started = killed_as_it_starts(monkeypatch, times=2)
    assert manager.ensure(served.home).alive
    assert started == [0, 0, 0]


def test_a_manager_that_never_lives_is_given_up_with_the_end_of_its_log(served, monkeypatch):
    started = killed_as_it_starts(monkeypatch, times=100)
    with pytest.raises(ManagerError, match="did not start"):
        manager.ensure(served.home)
    assert len(started) < 10


CLIENT = """
    import os, signal, sys, time
    from pathlib import Path
    from jupyter_autotrain import manager
    from jupyter_autotrain.core.home import Home
    home = Home(Path(sys.argv[1]))
    manager.ensure(home)
    manager.notify(home)
    print("notified", flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(600)
"""


LONG = [pytest.param(number, marks=pytest.mark.long) for number in (signal.SIGTERM, signal.SIGKILL)]


@pytest.mark.parametrize("number", [signal.SIGINT, *LONG])  # a kernel that outlives it is killed, too
def test_what_happens_to_the_kernel_touches_neither_manager_nor_trials(served, number):
    code = "import time\nfor step in range(100):\n    report(step=step, acc=1)\n    time.sleep(0.02)\n"
    bundle = served.home.bundle("e1")
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text(code)
    served.store.add_experiment("e1", ExperimentSpec("exp", Bundle(python=sys.executable)), time.time())
    argv = [sys.executable, "-c", textwrap.dedent(CLIENT), str(served.home.root)]
    kernel = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert kernel.stdout.readline() == b"notified\n"
        until(lambda: served.store.points("e1"), "the first metric")
        identity = ManagerIdentity.read(served.home.manager_lock)
        os.killpg(kernel.pid, number)
        if number == signal.SIGINT:
            os.killpg(kernel.pid, signal.SIGKILL)
        kernel.wait()
        assert psutil.Process(identity.pid).ppid() != kernel.pid
        until(lambda: served.states("e1") == ["SUCCEEDED"], "the trial's end")
        assert ManagerIdentity.read(served.home.manager_lock) == identity
        assert len(served.store.points("e1")) == 100
    finally:
        kernel.stdout.close()
        kernel.kill()
        kernel.wait()


def test_a_stop_ends_all_and_its_receipt_names_the_pids(served):
    served.submit("e1", "import time\nreport(acc=1)\ntime.sleep(600)", trials=3, concurrency=2)
    until(lambda: len(served.store.points("e1")) == 2, "both trials run")
    request = served.store.add_request("stop", "e1", {}, time.time())
    manager.notify(served.home)
    until(lambda: served.store.request(request).done, "the receipt")
    result = served.store.request(request).result
    assert result["trials"] == [1, 2]
    assert result["pids_left"] == []
    gone = [*result["pids_ended"], *result["pids_killed"]]
    assert len(gone) >= 2
    assert has_ended(*gone)
    assert served.states("e1") == ["CANCELLED", "CANCELLED"]


def test_files_are_private_and_no_port_is_open(served):
    served.submit("e1", "import time\nreport(acc=1)\ntime.sleep(600)")
    until(lambda: served.store.points("e1"), "the first metric")
    process = psutil.Process(ManagerIdentity.read(served.home.manager_lock).pid)
    assert process.net_connections(kind="inet") == []
    private = [served.home.wakeup_socket, served.home.manager_lock, served.home.manager_log]
    assert [oct(Path(path).stat().st_mode & 0o777) for path in private] == ["0o600"] * 3


UNTIL_ENOUGH = """
    import os, time
    step = 0
    while not os.path.exists("../enough"):
        report(step=step, a=step)
        step += 1
        time.sleep(0.05)
    print(step)
"""


def test_a_manager_out_of_descriptors_for_a_while_calls_no_running_trial_lost(served):
    served.submit("e1", UNTIL_ENOUGH, trials=3, concurrency=3)
    until(lambda: served.states("e1") == ["RUNNING"] * 3, "all trials run")
    pid = ManagerIdentity.read(served.home.manager_lock).pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    for _ in range(3):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
        time.sleep(0.3)  # the length of the shortage is the point
        assert served.states("e1") == ["RUNNING"] * 3
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        time.sleep(0.1)  # as above
    trials = [served.home.trial("e1", number, 1) for number in (1, 2, 3)]
    for trial in trials:
        (trial / "enough").touch()
    until(lambda: served.store.experiment("e1").state.is_final, "the end of the experiment")
    assert served.states("e1") == ["SUCCEEDED"] * 3
    seen = sorted((point.number, point.step) for point in served.store.points("e1"))
    counts = [int((trial / "stdout").read_text()) for trial in trials]
    assert seen == [(number, step) for number in (1, 2, 3) for step in range(counts[number - 1])]
    assert ManagerIdentity.read(served.home.manager_lock).pid == pid


def test_a_manager_out_of_descriptors_while_it_starts_trials_fails_none(served):
    pid = manager.ensure(served.home).pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{pid}/fd").iterdir())), hard))
    served.submit("e1", "report(a=1)", trials=3, concurrency=3)
    time.sleep(1.5)  # the length of the shortage is the point
    assert not {"FAILED", "LOST"} & set(served.states("e1"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: served.store.experiment("e1").state.is_final, "the end of the experiment")
    assert served.states("e1") == ["SUCCEEDED"] * 3
    assert ManagerIdentity.read(served.home.manager_lock).pid == pid


DEAF = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    report(acc=1)
    time.sleep(600)
"""


def test_a_manager_killed_while_it_stops_trials_still_tells_which_processes_ended(served):
    served.submit("e1", DEAF, trials=2, concurrency=2)
    until(lambda: len(served.store.points("e1")) == 2, "both trials run")
    request = served.store.add_request("stop", "e1", {"grace_s": 1.0}, time.time())
    manager.notify(served.home)
    folders = [served.home.trial("e1", number, 1) for number in (1, 2)]
    workers = [json.loads((folder / "status.json").read_text())["worker"][0] for folder in folders]
    until(lambda: all((folder / "control" / "cancel").exists() for folder in folders), "the cancel has begun")
    served.kill()
    until(lambda: has_ended(*workers), "the supervisors have ended them")
    manager.ensure(served.home)
    until(lambda: served.store.request(request).done, "the receipt")
    result = served.store.request(request).result
    assert set(workers) <= {*result["pids_ended"], *result["pids_killed"]}
    assert result["unreported"] == result["pids_left"] == []


def test_damaged_status_files_make_no_trial_lost_and_stop_still_finds_every_process(served):
    code = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\nreport(acc=1)\ntime.sleep(600)"
    served.submit("e1", code, trials=3, concurrency=3)
    until(lambda: len(served.store.points("e1")) == 3, "all trials report")
    until(lambda: served.states("e1") == ["RUNNING"] * 3, "all files of status say that they run")
    for number, data in ((1, b""), (2, b'{"state": "RUN'), (3, b"\xff" * 100)):
        (served.home.trial("e1", number, 1) / "status.json").write_bytes(data)
    until(lambda: "status.json is damaged" in str(manager.explain(served.store, served.home, "exp")), "the doubt")
    served.kill()
    manager.ensure(served.home)
    retry = served.store.add_request("retry", "e1", {}, time.time())
    manager.notify(served.home)
    until(lambda: served.store.request(retry).done, "the answer to the retry")
    assert served.states("e1") == ["RUNNING"] * 3
    folders = [str(served.home.trial("e1", number, 1)) for number in (1, 2, 3)]
    trees = [processes.marked("JUPYTER_AUTOTRAIN_TRIAL", folder) for folder in folders]
    assert [len(tree) for tree in trees] == [2, 2, 2]
    stop = served.store.add_request("stop", "e1", {}, time.time())
    manager.notify(served.home)
    until(lambda: served.store.request(stop).done, "the receipt")
    result = served.store.request(stop).result
    assert set().union(*trees) <= {*result["pids_ended"], *result["pids_killed"]}
    assert has_ended(*set().union(*trees))
    assert served.states("e1") == ["CANCELLED"] * 3
