"""Warm processes are listed, ended, told of and bounded, and outlive the manager that started them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager, verbs
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.fault.warm_trials import await_imports, end_warm, said, warm, warm_backend, warm_pids

pytestmark = pytest.mark.fault
CELL = "import json, decimal\nprint(json.dumps(1))"
Run = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    end_warm(made)


@pytest.fixture
def run(home: Home, tmp_path: Path) -> Run:
    def run(*words: str) -> str:
        written: list[str] = []
        command = verbs.CommandContext(
            home=home, environ={}, cwd=tmp_path, write_raw=written.append, show=lambda _: None,
            keep=lambda _name, _value: None, now=lambda: 0.0, evaluate=lambda _: None, show_plan=lambda _: None,
        )  # fmt: skip
        verbs.run(words, command)
        return "".join(written)

    return run


def test_they_are_listed_and_ended(home: Home, run: Run) -> None:
    assert "No warm processes" in run("ls", "--warm")
    said(warm_backend(home, reuse_idle=60.0), home, CELL, 1)
    await_imports(home, "decimal")
    (pid,) = warm_pids(home)
    (listed,) = json.loads(run("ls", "--warm", "--json"))
    assert (listed["pid"], listed["imports"], listed["left_out"]) == (pid, ["decimal"], {})
    assert listed["memory_bytes"] > 1 << 20
    assert "decimal" in run("ls", "--warm")
    assert run("stop", "--warm") == "Ended 1 warm process. Trials that run go on.\n"
    assert list(home.root.glob("warm/*/*")) == []
    assert run("stop", "--warm") == "No warm processes.\n"


def test_those_used_least_recently_end_where_all_together_hold_too_much(home: Home) -> None:
    cells = [f"import json, {module}\nprint(json.dumps(1))" for module in ("decimal", "fractions", "statistics")]
    for number, cell in enumerate(cells):
        said(warm_backend(home, reuse_idle=60.0), home, cell, number)
        await_imports(home, cell.splitlines()[0].rpartition(" ")[2])
    each_bytes = max(entry.memory_bytes for entry in warm(home))
    tight = warm_backend(home, reuse_idle=60.0, reuse_memory=2 * each_bytes + (1 << 20))
    cell = "import json, bisect, heapq\nprint(json.dumps(1))"
    said(tight, home, cell, 9)
    await_imports(home, "heapq")
    wait_until(lambda: len(warm(home)) <= 2, "the end of those used least recently")
    assert [entry.imports[-1] for entry in warm(home)][:1] == ["heapq"]


def test_an_import_that_takes_more_memory_than_all_may_have_is_left_to_the_trials(home: Home, run: Run) -> None:
    manager_pid = manager.ensure(home).pid
    options = {"reuse": True, "reuse_idle": 60.0, "reuse_memory": 1 << 20}
    experiment = submit(CELL, home=home, name="digits", local=options)
    experiment.wait()
    assert await_imports(home, "decimal").left_out == {"decimal": "it takes more memory than warm processes may have"}
    assert "Each trial imports decimal for itself: it takes more memory" in run("why", "digits")
    os.kill(manager_pid, signal.SIGTERM)


def test_they_serve_the_next_manager_when_theirs_is_killed(home: Home) -> None:
    options = {"reuse": True, "reuse_idle": 60.0}
    first = manager.ensure(home).pid
    submit(CELL, home=home, name="one", local=options).wait()
    before = warm_pids(home)
    os.kill(first, signal.SIGKILL)
    second = submit(CELL, home=home, name="two", local=options)
    second.wait()
    assert [str(trial.state) for trial in second.trials] == ["SUCCEEDED"]
    assert len(warm_pids(home)) == len(before) == 1
    os.kill(manager.ensure(home).pid, signal.SIGTERM)
