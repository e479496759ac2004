"""Cut links, killed agents, reboots, several managers: nothing lost, nothing twice, nothing left."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import Cursor
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_until
from tests.labs.ssh_lab import LabHost, SshLab
from tests.labs.ssh_trials import (
    COUNTS,
    LabBackends,
    end,
    end_with_supervisor,
    kill_agents,
    read_on,
    start,
    status,
    supervisors,
)
from tests.ssh.after_a_fault import is_told, is_whole, nothing_runs_on


def test_a_trial_goes_on_while_the_link_is_cut_and_is_read_on_without_loss(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b"").count(b"\n") > 3, "the first lines")
    seen = read_on(backend, ref, wire.METRICS, b"")
    host.cut()
    doubt = wait_until(lambda: status(backend, ref).doubt, "the cut is noticed")
    assert "h1 does not answer since" in doubt
    assert "trials go on there" in doubt
    with pytest.raises(BackendError) as caught:
        backend.link("h1").ask("ping")
    is_told(caught.value, "h1 does not answer since", "trials go on there")
    assert backend.read([Cursor(ref, wire.METRICS, len(seen))])[0].fault
    host.heal()
    wait_until(lambda: not status(backend, ref).doubt, "the link")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    frames = [json.loads(line) for line in read_on(backend, ref, wire.METRICS, seen).splitlines()]
    steps = [frame[1] for frame in frames if frame[0] == "m"]
    assert len(steps) > 10
    assert steps == list(range(len(steps)))
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def test_a_host_that_is_gone_costs_the_others_nothing(make: LabBackends, home: Home, lab: SshLab) -> None:
    backend = make(home, ("h1", "h2"))
    first = start(backend, home, COUNTS, "h1", number=1)
    second = start(backend, home, COUNTS, "h2", number=2)
    wait_until(lambda: status(backend, second).state is TrialState.RUNNING, "the trial on h2")
    lab.hosts[0].cut()
    wait_until(lambda: backend.poll([first, second])[0].doubt, "the cut is noticed")
    answers = backend.poll([first, second])
    assert answers[1].state is TrialState.RUNNING
    assert "h1" in backend.probe().reason
    assert [node.cpus is None for node in backend.discover().nodes] == [True, False]


def test_a_killed_agent_is_replaced_and_its_trials_go_on(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b""), "the first line")
    connection = backend.link("h1").connection()
    assert kill_agents(host)
    loss = wait_until(lambda: connection.loss, "the agent's end is noticed")
    is_told(loss, "The agent on h1 has ended")
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "another agent")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(host)


def test_trials_of_a_host_that_was_restarted_are_lost_with_that_reason(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the start")
    host.reboot()
    lost = end(backend, ref)
    assert lost.state is TrialState.LOST
    assert "the machine was restarted while the trial ran. `%autotrain retry`" in lost.reason
    make.close()
    nothing_runs_on(host)


def test_two_homes_use_one_account_of_a_host_side_by_side(make: LabBackends, host: LabHost, tmp_path: Path) -> None:
    backends = [make(Home(tmp_path / name)) for name in ("first", "second")]
    refs = []
    for backend, name in zip(backends, ("first", "second"), strict=True):
        refs.append(start(backend, Home(tmp_path / name), f"name = '{name}'\n{COUNTS}", returns=("name",)))
    for backend, ref, name in zip(backends, refs, ("first", "second"), strict=True):
        wait_until(lambda one=(backend, ref): read_on(*one, wire.STDOUT, b"").count(b"\n") > 3, f"lines of {name}")
        backend.put(ref, "control/enough", b"")
        assert end(backend, ref).state is TrialState.SUCCEEDED
        is_whole(backend, ref)
        backend.fetch(ref, f"{wire.OUTPUTS}/name.pkl", str(tmp_path / f"{name}.pkl"))
        assert pickle.loads((tmp_path / f"{name}.pkl").read_bytes()) == name
    make.close()
    nothing_runs_on(host)


def test_a_link_that_is_closed_leaves_the_trial_alone_and_no_agent(
    make: LabBackends, home: Home, host: LabHost
) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    backend.close()
    wait_until(lambda: not any("exec(sys" in command for command in host.commands().values()), "the agent's end")
    assert supervisors(host)
    assert status(make(home), ref).state in {TrialState.PREPARING, TrialState.RUNNING}


def test_nothing_listens_and_everything_there_is_private(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    end_with_supervisor(backend, start(backend, home, "print(1)\nreport(a=1)"))
    assert [line.split()[3] for line in host.run("ss", "-ltnH").splitlines()] == [f"{host.address}:22"]
    root = host.home() / ".autotrain"
    modes = {path: stat.S_IMODE(os.lstat(path).st_mode) for path in (root, *root.rglob("*")) if not path.is_symlink()}
    assert {str(path) for path, mode in modes.items() if mode & 0o077} == set()


def test_a_secret_is_nowhere_on_the_hosts_disk(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    trial = trial_of(home, "import os\nprint(len(os.environ['API_KEY']))", secrets=("API_KEY",))
    ref = backend.submit(trial, Placement(), {"API_KEY": "s3cr3t-t0ken-0123456789"})
    end_with_supervisor(backend, ref)
    assert read_on(backend, ref, wire.STDOUT, b"") == b"23\n"
    files = [path for path in (host.home() / ".autotrain").rglob("*") if path.is_file()]
    assert [path for path in files if b"s3cr3t-t0ken" in path.read_bytes()] == []


def test_while_a_host_does_not_answer_questions_fail_at_once(
    make: LabBackends, home: Home, host: LabHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = make(home)
    now_s = [0.0]
    link = HostLink(backend._links["h1"].config, lambda: now_s[0])
    link.greeting()
    host.cut()
    may_connect = threading.Event()
    connect = agent_connection.connect
    monkeypatch.setattr(agent_connection, "connect", lambda *where: (may_connect.wait(), connect(*where))[1])
    for _ in range(5):  # the first notices the cut, the second tries to connect again; none waits for that
        with pytest.raises(BackendError, match="does not answer since"):
            link.ask("ping")
    host.heal()
    may_connect.set()

    def answers() -> bool:
        now_s[0] += 20.0
        try:
            link.ask("ping")
        except BackendError:
            return False
        return True

    wait_until(answers, "the link")
    link.close()


def test_a_profile_without_hosts_or_with_an_unknown_one_is_an_error(make: LabBackends, home: Home) -> None:
    with pytest.raises(BackendError, match="names no host"):
        make(home, ())
    with pytest.raises(BackendError, match="has no host 'h9'"):
        start(make(home), home, "", "h9")
