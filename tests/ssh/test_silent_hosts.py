"""Hosts that acknowledge everything and answer nothing, and programs there that answer without end."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psutil
import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh import transport as remote_command
from jupyter_autotrain.backends.transfer import sending
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import COUNTS, LabBackends, agents, end, read_on, start, status
from tests.matrices import long_besides
from tests.ssh.after_a_fault import is_told, is_whole, nothing_runs_on

TRANSPORTS = ("paramiko", pytest.param("openssh", marks=pytest.mark.long))  # what it tests is common to both
NOTICED_S = 240.0
MOST_MEMORY_BYTES = 200_000_000
# What stands in the place of `python3` on a host, and what is said of it.
PROGRAMS = {
    "the same line without end": ("exec yes", "printed 'y'"),
    "a line without end": ("exec tr '\\0' x </dev/zero", "printed 'xxxx"),
    "a line that grows slowly without end": ("while sleep 0.1; do printf x; done", "has not answered within 2 s"),
    "errors without end, and nothing else": ("exec yes >&2", "has not answered within 2 s"),
    "nothing": ("exec sleep 1000", "has not answered within 2 s"),
    "a number": ("echo 1; exec sleep 1000", "printed '1'"),
    "other JSON": ('echo \'{"level": "info"}\'; exec sleep 1000', 'printed \'{"level": "info"}\''),
    "brackets without end": ("head -c 500000 /dev/zero | tr '\\0' '['; echo; exec sleep 1000", "printed '[[["),
    "Python 3.8": ("echo 'it is Python 3.8' >&2; exit 1", "it is Python 3.8"),
    "Python 2": ("echo 'Unknown option: -I' >&2; echo 'Try python -h' >&2; exit 2", "it is older than Python 3.4"),
}
SOME_PROGRAMS = ("the same line without end", "nothing", "other JSON", "brackets without end", "Python 3.8", "Python 2")
SHELLS = {
    "prints lines without end": ("yes", "prints without end"),
    "prints slowly without end": ("while sleep 0.1; do echo x; done", "has not run a command within 2 s"),
    "waits": ("sleep 1000", "has not run a command within 2 s"),
}


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def answers_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the heartbeats notice a silence."""
    monkeypatch.setattr(agent_connection, "_ANSWER_S", 900.0)


@pytest.fixture
def frozen(host: LabHost) -> Iterator[LabHost]:
    yield host
    host.thaw()


def test_a_host_whose_processes_are_stopped_is_named_as_silent_and_goes_on_when_it_is_back(
    make: LabBackends, home: Home, frozen: LabHost, transport: str
) -> None:
    backend = make(home, transport=transport)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b"").count(b"\n") > 3, "the first lines")
    frozen.freeze()
    silent = wait_until(lambda: status(backend, ref).doubt and status(backend, ref), "the silence", within_s=NOTICED_S)
    assert silent.unreachable
    assert "h1 does not answer since" in silent.doubt
    assert "trials go on there" in silent.doubt
    with pytest.raises(BackendUnavailableError) as caught:
        backend.cancel(ref, 0.5)
    is_told(caught.value, "h1 does not answer since")  # nobody waits for a host that is known to be silent
    frozen.thaw()
    wait_until(lambda: not status(backend, ref).doubt, "the link")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    make.close()
    nothing_runs_on(frozen)


def test_a_cancel_that_a_host_never_answers_fails_with_its_name(
    make: LabBackends, home: Home, frozen: LabHost, transport: str
) -> None:
    backend = make(home, transport=transport)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b""), "the first line")
    frozen.freeze()
    begun_s = time.monotonic()
    with pytest.raises(BackendUnavailableError) as caught:
        backend.cancel(ref, 0.5)
    assert time.monotonic() - begun_s < NOTICED_S
    is_told(caught.value, "h1 does not answer")


def test_a_host_that_is_silent_from_the_beginning_is_named_in_time(
    make: LabBackends, home: Home, frozen: LabHost, transport: str
) -> None:
    backend = make(home, transport=transport)
    frozen.freeze()
    begun_s = time.monotonic()
    with pytest.raises(BackendUnavailableError) as caught:
        start(backend, home, "print(1)")
    assert time.monotonic() - begun_s < NOTICED_S
    is_told(caught.value, "h1")


def test_an_agent_that_is_stopped_is_replaced(make: LabBackends, home: Home, frozen: LabHost, transport: str) -> None:
    backend = make(home, transport=transport)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b""), "the first line")
    stopped = agents(frozen)
    for agent in stopped:
        agent.suspend()
    seen = read_on(backend, ref, wire.STDOUT, b"")
    wait_until(lambda: len(read_on(backend, ref, wire.STDOUT, b"")) > len(seen) + 100, "news by another agent")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)
    for agent in stopped:
        agent.kill()
    make.close()
    nothing_runs_on(frozen)


def test_a_disk_that_does_not_answer_makes_its_host_a_silent_one(make: LabBackends, home: Home, host: LabHost) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: read_on(backend, ref, wire.STDOUT, b""), "the first line")
    with host.silent_disk(f"{host.files.home(host.user)}/.autotrain"):
        doubt = wait_until(lambda: status(backend, ref).doubt, "the silence", within_s=NOTICED_S)
        assert "h1 does not answer since" in doubt
        assert not backend.probe().usable
    wait_until(lambda: not status(backend, ref).doubt, "the link")
    backend.put(ref, "control/enough", b"")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    is_whole(backend, ref)


def test_a_request_that_is_never_answered_fails_while_others_are(
    make: LabBackends, home: Home, host: LabHost, scratch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_connection, "_ANSWER_S", 2.0)
    backend = make(home)
    ref = start(backend, home, "print(1)")
    end(backend, ref)
    with host.silent_disk(host.make_folder(scratch)):
        with pytest.raises(BackendUnavailableError) as caught:
            backend.link("h1").ask("missing", paths=[f"{scratch}/data"])
        is_told(caught.value, "h1 does not answer since", "within 2 s")
        wait_until(lambda: backend.probe().usable, "another link")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make waits for what never comes end soon."""
    monkeypatch.setattr(sending, "_START_S", 2.0)
    monkeypatch.setattr(remote_command, "LOGIN_S", 2.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("said", long_besides(SOME_PROGRAMS, PROGRAMS))
def test_an_interpreter_that_is_none_is_named_with_what_it_said(
    make: LabBackends, home: Home, host: LabHost, scratch: str, said: str, transport: str
) -> None:
    program, told = PROGRAMS[said]
    python = host.write(scratch, f"#!/bin/sh\n{program}\n", 0o755)
    refused(make(home, python=python, transport=transport), python, "h1", told)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("does", SHELLS)
def test_a_login_shell_without_an_end_is_named(
    make: LabBackends, home: Home, host: LabHost, does: str, transport: str
) -> None:
    start_up = host.home() / ".bashrc"
    line, told = SHELLS[does]
    start_up.write_text(f"{line}\n")
    try:
        refused(make(home, transport=transport), "The login shell of h1", told)
    finally:
        start_up.unlink()


def refused(backend: object, *words: str) -> None:
    """Expect that the host is refused soon, with little memory, by an error that says these words."""
    before_bytes = psutil.Process().memory_info().rss
    begun_s = time.monotonic()
    with pytest.raises(AutotrainError) as caught:
        backend.link("h1").ask("ping")  # type: ignore[attr-defined]  # a backend of the lab
    assert time.monotonic() - begun_s < NOTICED_S
    assert psutil.Process().memory_info().rss - before_bytes < MOST_MEMORY_BYTES
    is_told(caught.value, *words)
