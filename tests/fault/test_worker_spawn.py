"""Processes that a cell starts by multiprocessing's spawn: they get its definitions and run nothing else of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_until

pytestmark = pytest.mark.fault


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def run(home: Home, code: str, **spec: object) -> Path:
    """Run a trial, which succeeds; gives its directory."""
    backend = backends.create(Profile("local", "local"), BackendContext(home))
    ref = backend.submit(trial_of(home, code, **spec), Placement(), {})
    trial = home.trial("e1", 1, 1)
    wait_until(lambda: backend.poll([ref])[0].state.is_final, "its end")
    assert backend.poll([ref])[0].state is TrialState.SUCCEEDED, printed(trial, wire.STDERR)
    return trial


def printed(trial: Path, stream: str = wire.STDOUT) -> str:
    path = trial / stream
    return path.read_text() if path.exists() else ""


def notes(trial: Path) -> list[tuple[str, str]]:
    """Level and text of each note."""
    frames = [json.loads(line) for line in printed(trial, wire.METRICS).splitlines()]
    return [(frame[2], frame[3]) for frame in frames if frame[0] == "n"]


def test_a_pool_in_an_unguarded_cell_works(home: Home) -> None:
    code = """
        import multiprocessing
        SCALE = 10
        def f(x):
            return x * SCALE * lr
        print("main")
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(f, [1, 2]))
    """
    trial = run(home, code, params={"lr": 0.5})
    assert printed(trial) == "main\n[5.0, 10.0]\n"
    assert notes(trial) == []


def test_a_definition_that_fails_there_is_named_once_with_its_reason(home: Home) -> None:
    code = """
        import multiprocessing
        widths = {"__main__": 1}
        limit = widths[__name__]
        def f(x):
            return x
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            print(sum(pool.map(f, range(30))))
    """
    trial = run(home, code)
    assert printed(trial) == "435\n"
    (note,) = notes(trial)
    assert note[0] == "warning"
    assert "`limit = widths[__name__]` is not defined in the processes that this trial starts" in note[1]
    assert "(KeyError: '__mp_main__')" in note[1]
    assert printed(trial, wire.STDERR) == f"autotrain: {note[1]}\n"
    assert not list(trial.glob("control/*"))


def test_what_only_the_running_cell_has_is_no_warning(home: Home) -> None:
    code = """
        import multiprocessing
        rows = list(range(3))
        first = rows[0]
        twice = first + first
        def f(x):
            return x
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(f, [1]))
    """
    trial = run(home, code)
    assert [level for level, _ in notes(trial)] == ["info", "info"]
    assert "`first = rows[0]`" in notes(trial)[0][1]
    assert "it needs 'rows', which only the running cell has" in notes(trial)[0][1]
    assert "`twice = first + first`" in notes(trial)[1][1]
