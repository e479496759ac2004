"""Starts of trials that take long, fail for a moment, or cannot succeed."""

from __future__ import annotations

import errno
import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jupyter_autotrain.agent.service import starting
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_until
from tests.fault.local_trials import (
    COUNTS,
    begun,
    directory_of,
    finish,
    local,
    nothing_left,
    status,
    supervisor_gone,
    text,
)

pytestmark = pytest.mark.fault


@pytest.fixture
def backend(home: Home) -> LocalBackend:
    """Return a backend that starts a supervisor for each trial."""
    return local(home, reuse=False)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a start that goes on only once this file is there."""
    shim = tmp_path / "start.py"
    gate = tmp_path / "gate"
    shim.write_text(
        textwrap.dedent(f"""
        import os, sys, time
        while not os.path.exists({str(gate)!r}):
            time.sleep(0.01)
        sys.path.insert(0, {str(Path(processes.__file__).parents[3])!r})
        from jupyter_autotrain.agent.supervisor.supervisor_main import main
        main(sys.argv[2])
        """)
    )
    run = starting._run
    monkeypatch.setattr(starting, "_run", lambda argv, env: run([*argv[:-3], str(shim), *argv[-2:]], env))
    return gate


def test_a_start_that_takes_longer_than_anyone_waits_is_neither_failed_nor_made_twice(
    backend: LocalBackend, home: Home, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_START_S", 0.05)
    trial = trial_of(home, "print('ran')")
    ref = backend.submit(trial, Placement(), {})
    assert "being started" in status(backend, ref).doubt
    assert backend.submit(trial, Placement(), {}) == ref
    gate.touch()
    assert finish(backend, ref).state is TrialState.SUCCEEDED
    assert text(backend, ref) == "ran\n"
    supervisor_gone(str(directory_of(home, trial)))


def test_a_start_that_dies_half_way_is_lost_only_when_nothing_of_it_is_left(
    backend: LocalBackend, home: Home, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_START_S", 0.05)
    trial = trial_of(home, "print('ran')")
    ref = backend.submit(trial, Placement(), {})
    for pid in processes.running("supervisor", str(directory_of(home, trial))):
        os.kill(pid, 9)
    wait_until(lambda: status(backend, ref).state is TrialState.LOST, "the proof")
    assert "never started" in status(backend, ref).reason


@pytest.mark.parametrize("fate", [(None, ""), (-9, ""), (1, "OSError: [Errno 5] Input/output error")])
def test_a_start_that_only_seems_to_have_failed_is_looked_for(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch, fate: tuple[int | None, str]
) -> None:
    run = starting._run

    def seems_to_fail(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        run(argv, env)
        return fate

    monkeypatch.setattr(starting, "_run", seems_to_fail)
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    assert len(processes.running("supervisor", str(directory_of(home, trial)))) == 1
    backend.cancel(ref, 1.0)
    assert nothing_left(str(directory_of(home, trial)))


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.EMFILE, "Too many open files"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        (1, "OSError: [Errno 24] Too many open files: 'x'"),
    ],
)
def test_what_a_machine_lacks_for_a_moment_is_waited_for(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch, fault: OSError | tuple[int, str]
) -> None:
    run = starting._run
    faults = [fault] * 3

    def at_first(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        if not faults:
            return run(argv, env)
        now = faults.pop()
        if isinstance(now, OSError):
            raise now
        return now

    monkeypatch.setattr(starting, "_run", at_first)
    ref = backend.submit(trial_of(home, "print('ran')"), Placement(), {})
    assert finish(backend, ref).state is TrialState.SUCCEEDED
    assert text(backend, ref) == "ran\n"


def test_a_look_that_fails_before_a_start_is_made_again(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = starting.has_begun
    faults = [OSError(errno.EMFILE, "Too many open files")] * 2

    def at_first(directory: Path) -> bool:
        if faults:
            raise faults.pop()
        return look(directory)

    monkeypatch.setattr(starting, "has_begun", at_first)
    ref = backend.submit(trial_of(home, "print('ran')"), Placement(), {})
    assert finish(backend, ref).state is TrialState.SUCCEEDED
    assert text(backend, ref) == "ran\n"


def test_a_machine_that_stays_out_of_descriptors_says_so(
    backend: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_FOR_NOW_S", 0.0)

    def never(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(starting, "_run", never)
    with pytest.raises(BackendError, match=r"too many files are open[^\n]*\n[^\n]*\nRaise `ulimit -n`"):
        backend.submit(trial_of(home, ""), Placement(), {})


@pytest.mark.parametrize("kind", ["missing", "no permission", "another machine's", "no Python"])
def test_an_interpreter_that_cannot_be_used_is_told_in_three_clauses(
    backend: LocalBackend, home: Home, tmp_path: Path, kind: str
) -> None:
    python = tmp_path / "python"
    if kind == "no permission":
        python.write_text("#!/bin/sh\n")
    elif kind == "another machine's":
        python.write_bytes(b"\x7fELF" + b"\xff" * 100)
        python.chmod(0o755)
    elif kind == "no Python":
        shutil.copy("/bin/true", python)
    end = finish(backend, backend.submit(trial_of(home, "", python=str(python)), Placement(), {}))
    assert end.state is TrialState.FAILED
    assert str(python) in end.reason
    said = {
        "missing": "No such file", "no permission": "not executable", "another machine's": "another kind of machine",
        "no Python": "before the cell began",
    }  # fmt: skip
    assert said[kind] in end.reason
    assert "was expected" in end.reason
    assert "submit again" in end.reason.lower()


@pytest.mark.parametrize(("depth", "length"), [(1, 300), (40, 200)])
def test_a_home_with_too_long_a_path_is_told_as_such(tmp_path: Path, depth: int, length: int) -> None:
    home = Home(tmp_path.joinpath(*["x" * length] * depth))
    trial = trial_of(Home(tmp_path), "")
    with pytest.raises(BackendError, match="too long"):
        local(home).submit(trial, Placement(), {})
