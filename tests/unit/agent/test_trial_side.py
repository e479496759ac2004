from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import api, cell_runner, child_definitions
from jupyter_autotrain.agent.ranks.namespace import Params
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import trial_file, trial_of, wait_until

ROOT = Path(wire.__file__).parents[2]


@pytest.fixture
def trial_dir(tmp_path: Path) -> Path:
    home = Home(tmp_path)
    content = trial_file(home, trial_of(home, "", params={"lr": 0.5}))
    directory = home.trial("e1", 1, 1)
    (directory / wire.CONTROL).mkdir(parents=True)
    (directory / wire.TRIAL_FILE).write_text(json.dumps(content))
    return directory


def python(code: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parameters_are_read_both_ways_and_a_wrong_name_lists_the_right_ones() -> None:
    params = Params({"lr": 0.1, "net": {"depth": 3}})
    assert params.lr == params["lr"] == 0.1
    assert params.net.depth == 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="it has: lr, net"):
        _ = params.rate


def test_an_override_is_said_once_and_only_when_it_changes_something(
    trial_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = api.TrialContext(str(trial_dir), json.loads((trial_dir / wire.TRIAL_FILE).read_text()))
    assert trial.override("lr", 0.001) == 0.5
    assert trial.override("lr", 0.5) == 0.5
    assert trial.override("other", 3) == 3
    assert capsys.readouterr().out == "lr = 0.001 in the cell; this trial uses 0.5 (search)\n"


def test_should_stop_turns_true_and_stays_so(trial_dir: Path) -> None:
    trial = api.TrialContext(str(trial_dir), json.loads((trial_dir / wire.TRIAL_FILE).read_text()))
    assert not trial.should_stop()
    (trial_dir / wire.STOP_FILE).write_text("Enough.")
    wait_until(trial.should_stop, "the stop is seen")
    (trial_dir / wire.STOP_FILE).unlink()
    assert trial.should_stop()


def test_asking_whether_to_stop_looks_at_the_disk_at_most_every_50_ms(
    trial_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = api.TrialContext(str(trial_dir), json.loads((trial_dir / wire.TRIAL_FILE).read_text()))
    looks: list[str] = []
    monkeypatch.setattr(os.path, "exists", lambda path: bool(looks.append(path)))
    monkeypatch.setattr(time, "monotonic", iter([k / 1000 for k in range(1, 101)]).__next__)
    for _ in range(100):
        trial.should_stop()
    assert len(looks) == 2


def test_a_module_beside_the_notebook_reports_through_the_package(trial_dir: Path) -> None:
    code = "import jupyter_autotrain as at; at.report(loss=2.0); print(at.params.lr, at.should_stop())"
    assert python(code, trial_dir, **{wire.TRIAL_VARIABLE: str(trial_dir)}) == "0.5 False\n"
    assert '{"loss":2.0}' in (trial_dir / wire.METRICS).read_text()


def test_outside_a_trial_reports_are_printed(tmp_path: Path) -> None:
    assert python("import jupyter_autotrain as at; at.report(step=3, loss=2.0)", tmp_path) == "step 3: loss=2.0\n"


def test_the_trial_side_loads_the_standard_library_alone(trial_dir: Path) -> None:
    code = "import sys, jupyter_autotrain.agent.ranks.worker_main\nprint(*{m.partition('.')[0] for m in sys.modules})"
    loaded = set(python(code, trial_dir).split())
    ours = {"jupyter_autotrain"}
    foreign = {name for name in loaded - ours - sys.stdlib_module_names if not name.startswith(("_", "sitecustomize"))}
    assert foreign <= {"distutils-precedence"}


@pytest.mark.parametrize("entry_point", ["supervisor.supervisor_main", "ranks.worker_main"])
def test_neither_side_of_a_trial_loads_what_is_slow_to_import(tmp_path: Path, entry_point: str) -> None:
    code = f"import sys\nimport jupyter_autotrain.agent.{entry_point}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    slow = {"typing", "dataclasses", "pathlib", "inspect", "subprocess", "socket", "threading", "ast", "traceback"}
    assert set(done.stdout.split()) & slow == set()


def test_definitions_are_told_from_actions() -> None:
    code = """
import os
from math import pi
K = 3
TABLE = __autotrain_data__("t")
lr = __autotrain_override__("lr", 0.1)
def f(): train()
class A: pass
try:
    import numpy as np
except ImportError:
    np = None
if K > 2:
    mode = "fast"
print("acts")
model = train()
for _ in range(3): f()
if f(): x = 1
with open("x"): pass
"""
    kept = "\n".join(map(ast.unparse, child_definitions.select(ast.parse(code).body)))
    assert [
        word in kept for word in ("import os", "pi", "K = 3", "TABLE", "lr =", "def f", "class A", "np = None", "mode")
    ] == [True] * 9
    assert [word in kept for word in ("print", "model", "for _", "x = 1", "with")] == [False] * 5


def test_the_environment_of_a_trial_is_complete_and_minimal() -> None:
    trial = {
        "directory": "/t", "gpus": ["G1", "G2"], "resources": {"cpus": 1.5}, "seed": 5, "env": {"A": "b"},
        "environment": {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PATH": "/bin", "A": "a"},
        "secrets": ["KEY", "UNSET"],
    }  # fmt: skip
    assert environment.complete(trial, {"KEY": "k", "CANARY": "c", "JPY_PARENT_PID": "7"}) == {
        wire.TRIAL_VARIABLE: "/t", "CUDA_VISIBLE_DEVICES": "G1,G2", "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "5",
        "MPLBACKEND": "Agg", "A": "b", "PATH": "/bin", "KEY": "k",
    }  # fmt: skip


def test_visible_gpus_and_threads_stay_as_they_are_when_nothing_is_asked() -> None:
    inherited = {"OMP_NUM_THREADS": "7", "CUDA_VISIBLE_DEVICES": "1"}
    own = environment.complete({"directory": "/t", "resources": {"cpus": 2.0}, "environment": inherited}, {})
    assert own == {wire.TRIAL_VARIABLE: "/t", "PATH": os.defpath, "PYTHONHASHSEED": "0", **inherited}


@pytest.mark.parametrize(
    ("trial", "inherited", "expected"),
    [
        ({}, {}, "0"),
        ({}, {"PYTHONHASHSEED": "3"}, "3"),
        ({"seed": 7}, {"PYTHONHASHSEED": "3"}, "7"),
        ({"seed": 9, "number": 3}, {}, "7"),
    ],
)
def test_every_trial_has_a_fixed_hash_seed(trial: dict[str, object], inherited: dict[str, str], expected: str) -> None:
    own = environment.complete({"directory": "/t", "environment": inherited, **trial}, {})
    assert own["PYTHONHASHSEED"] == expected


def test_seeds_are_set_when_a_library_is_imported_and_not_before(tmp_path: Path) -> None:
    code = """
import sys
from jupyter_autotrain.agent.ranks.library_hooks import seed_everything
seed_everything(3)
assert "numpy" not in sys.modules
import random, numpy.random
print(random.random(), numpy.random.rand(), type(numpy.random.__loader__).__name__)
"""
    import numpy as np

    first = python(code, tmp_path)
    second = python(code, tmp_path)
    state = np.random.RandomState(3)
    assert first == second == f"{random.Random(3).random()} {state.rand()} SourceFileLoader\n"


def test_nobody_is_hit_by_a_signal_for_a_pid_that_is_used_again() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert not processes.send_signal(ProcessIdentity(me.pid, me.created_s - 1.0, me.boot_id), 9)


def test_a_child_and_its_environment_are_found(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={wire.TRIAL_VARIABLE: str(tmp_path)},
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert child.pid in processes.descendants(os.getpid())
        assert processes.marked(wire.TRIAL_VARIABLE, str(tmp_path)) == {child.pid}
        assert processes.resident_bytes({child.pid}) > 1 << 20
        assert processes.living({child.pid, 2**30}) == {child.pid}
    finally:
        child.communicate(b"\n")


def test_the_flag_for_top_level_await_is_python_s_own() -> None:
    assert ast.PyCF_ALLOW_TOP_LEVEL_AWAIT == cell_runner._TOP_LEVEL_AWAIT
