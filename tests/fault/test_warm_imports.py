"""Tests of imports made once for all trials of a cell: only what may be shared, renewed when it changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jupyter_autotrain.agent import system
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.fault.warm_trials import (
    await_imports,
    cold_backend,
    end_warm,
    kill,
    said,
    start,
    values,
    warm,
    warm_backend,
    warm_pids,
)

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment, whose packages tests write."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    end_warm(made)


@pytest.fixture
def backend(home: Home) -> LocalBackend:
    return warm_backend(home, reuse_idle=60.0)


def install(venv: Path, **modules: str) -> str:
    """Install modules, and return the interpreter that has them."""
    (packages,) = venv.glob("lib/python*/site-packages")
    for name, code in modules.items():
        (packages / f"{name}.py").write_text(code)
    return str(venv / "bin" / "python")


def printed(backend: LocalBackend, home: Home, code: str, number: int, python: str, **spec: object) -> object:
    return values(said(backend, home, code, number, python=python, **spec))


COUNTED = "import time\nTIME_S = time.monotonic()"
LOOK = "import json, counted\nprint(json.dumps(counted.TIME_S))"


def test_trials_find_what_was_imported_once(backend: LocalBackend, home: Home, venv: Path) -> None:
    python = install(venv, counted=COUNTED)
    printed(backend, home, LOOK, 1, python)
    assert await_imports(home, "counted").imports == ["counted"]
    assert printed(backend, home, LOOK, 2, python) == printed(backend, home, LOOK, 3, python)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", "threads"),
        ("import subprocess\nchild = subprocess.Popen(['sleep', '1000'])", "processes"),
        ("file = open('/dev/zero')", "keeps files open"),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", "signals"),
        ("import os\nos._exit(3)", "ends the process"),
        ("raise ValueError('no licence')", "no licence"),
    ],
)
def test_an_import_whose_effects_cannot_be_shared_is_left_to_the_trials(
    backend: LocalBackend, home: Home, venv: Path, code: str, why: str
) -> None:
    python = install(venv, counted=COUNTED, strange=code)
    cell = "import json, counted\ntry:\n    import strange\nexcept ValueError:\n    pass\nprint(1)"
    if "_exit" in code:
        cell = cell.replace("    import strange", "    if json is None: import strange\n    import strange")
    start(backend, home, cell, 1, python=python)
    entry = await_imports(home, "counted", "strange")
    assert entry.imports == ["counted"]
    assert why in entry.left_out["strange"]


def test_code_of_the_users_own_is_imported_by_each_trial(
    backend: LocalBackend, home: Home, venv: Path, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    module = tmp_path / "own" / "mine.py"
    module.write_text("WORD = 'old'")
    python = install(venv, counted=COUNTED)
    variables = {"PYTHONPATH": str(module.parent)}
    cell = "import json, counted, mine\nprint(json.dumps(mine.WORD))"
    assert printed(backend, home, cell, 1, python, environment=variables) == "old"
    assert await_imports(home, "counted", "mine").left_out == {"mine": "it is code of your own"}
    module.write_text("WORD = 'newer'")
    assert printed(backend, home, cell, 2, python, environment=variables) == "newer"


def test_an_upgrade_renews_the_process_and_the_import(backend: LocalBackend, home: Home, venv: Path) -> None:
    python = install(venv, versioned="WORD = 'old'")
    cell = "import json, versioned\nprint(json.dumps(versioned.WORD))"
    assert printed(backend, home, cell, 1, python) == "old"
    before = await_imports(home, "versioned")
    install(venv, versioned="WORD = 'newer'")
    assert printed(backend, home, cell, 2, python) == "newer"
    assert [entry.process for entry in warm(home)] != [before.process]


def test_a_copy_that_imports_takes_the_place_of_a_warm_process_that_is_killed_meanwhile(
    backend: LocalBackend, home: Home, venv: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    python = install(venv, slow=f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)")
    for number in (1, 2):
        start(backend, home, "import slow", number, python=python)
    (pid,) = warm_pids(home)
    wait_until(lambda: len(system.children(pid)) == 3, "two trials, and the copy that imports")
    kill(pid)
    go.touch()
    assert await_imports(home, "slow").imports == ["slow"]


def test_a_module_that_travels_hides_one_that_was_imported(backend: LocalBackend, home: Home, venv: Path) -> None:
    python = install(venv, counted="import hidden", hidden="WORD = 'installed'")
    cell = "import json, counted, sys\nprint(json.dumps(sys.modules['hidden'].WORD))"
    assert printed(backend, home, cell, 1, python) == "installed"
    await_imports(home, "counted")
    files = home.bundle("e2") / "files"
    files.mkdir(parents=True)
    (files / "hidden.py").write_text("WORD = 'the cell'")
    assert printed(backend, home, cell, 2, python) == "the cell"


def test_what_an_import_prints_and_sets_is_in_each_trial_as_if_it_was_made_there(
    backend: LocalBackend, home: Home, venv: Path
) -> None:
    python = install(venv, loud="import os\nprint('welcome')\nos.environ['SET'] = 'yes'\nos.environ.pop('GONE', None)")
    cell = "import loud, os\nprint(os.environ.get('SET'), os.environ.get('GONE'))"
    given: Mapping[str, str] = {"GONE": "1"}
    cold = said(cold_backend(home), home, cell, 1, python=python, env=given)
    said(backend, home, cell, 2, python=python, env=given)
    assert await_imports(home, "loud").imports == ["loud"]
    assert said(backend, home, cell, 3, python=python, env=given) == cold == "welcome\nyes None\n"


def test_what_an_import_has_made_for_all_does_not_end_with_each_trial(
    backend: LocalBackend, home: Home, venv: Path
) -> None:
    shared = "import weakref\nclass Shared: pass\nshared = Shared()\nweakref.finalize(shared, print, 'shared')"
    python = install(venv, held=shared)
    cell = "import held, weakref\nown = held.Shared()\nweakref.finalize(own, print, 'own')"
    said(backend, home, cell, 1, python=python)
    assert "held" in await_imports(home, "held").imports
    assert said(backend, home, cell, 2, python=python) == "own\n"


def test_a_seed_gives_the_same_numbers_with_and_without_imports_beforehand(backend: LocalBackend, home: Home) -> None:
    draw = "import json, random\nimport numpy as np\nprint(json.dumps([random.random(), np.random.rand(), hash('a')]))"
    cold = values(said(cold_backend(home), home, draw, 1, seed=7))
    assert values(said(backend, home, draw, 2, seed=7)) == cold
    await_imports(home, "numpy")
    assert values(said(backend, home, draw, 3, seed=7)) == cold


def test_figures_are_kept_as_in_any_trial(backend: LocalBackend, home: Home) -> None:
    cell = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint(plt.get_backend())"
    cold = said(backend, home, cell, 1)
    assert await_imports(home, "matplotlib.pyplot").imports == ["matplotlib.pyplot"]
    assert said(backend, home, cell, 2) == cold
    pictures = [len(list((home.trial(f"e{number}", 1, 1) / "outputs").rglob("*.png"))) for number in (1, 2)]
    assert pictures[0] == pictures[1] == 1


REMOVE = """
import counted, os, shutil
shutil.rmtree(os.environ["JUPYTER_AUTOTRAIN_TRIAL"].partition("/experiments/")[0] + "/warm")
"""


def test_a_trial_that_removes_the_folder_of_warm_processes_harms_no_other(
    backend: LocalBackend, home: Home, venv: Path
) -> None:
    python = install(venv, counted=COUNTED)
    said(backend, home, LOOK, 1, python=python)
    await_imports(home, "counted")
    said(backend, home, REMOVE, 2, python=python)
    assert values(said(backend, home, LOOK, 3, python=python))
