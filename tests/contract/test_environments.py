"""Trials run with the interpreter and packages that their experiment asks for; what is half-made is never used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs.wheels import write_wheel

SHOWS = "import sys, small\nprint(small.__version__, small.deeper.__version__, sys.prefix)\nreport(ok=1)"


class Trials:
    """Trials of the local backend, by their environments."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")
        self.backend = LocalBackend(Profile("local", "local"), BackendContext(self.home))
        self.wheels = folder / "wheels"
        write_wheel(self.wheels, "deeper", "2.1")
        write_wheel(self.wheels, "small", "1.0", "import deeper", ["deeper>=2"])
        self._number = 0

    def start(self, kind, value="", requirements=(), code=SHOWS, **spec):
        self._number += 1
        own = {"PATH": "/usr/bin:/bin", "PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1"}  # no uv there
        env = {**own, **spec.pop("env", {})}
        asked = PythonEnvironment(kind, value, requirements)
        trial = trial_of(self.home, code, experiment_id=f"e{self._number}", python_environment=asked, env=env, **spec)
        return self.backend.submit(trial, Placement(), {})

    def venv(self, *requirements, **more):
        return self.start(EnvironmentKind.REQUIREMENTS, requirements=requirements, **more)

    def status(self, ref):
        return self.backend.poll([ref])[0]

    def end(self, ref):
        return wait_for_end(self.backend, ref)

    def text(self, ref, name="stdout"):
        path = Path(str(ref.data["directory"])) / name
        return path.read_text() if path.exists() else ""

    def made(self):
        root = self.home.environments
        return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


@pytest.fixture
def trials(tmp_path):
    return Trials(tmp_path)


def test_a_virtual_environment_is_made_once_for_trials_that_start_at_the_same_time(trials):
    refs = [trials.venv("small==1.0") for _ in range(3)]
    ends = [trials.end(ref) for ref in refs]
    assert [end.state for end in ends] == [TrialState.SUCCEEDED] * 3, [end.reason for end in ends]
    (folder,) = trials.made()
    for ref in refs:
        assert trials.text(ref).split() == ["1.0", "2.1", str(trials.home.environments / folder)]
    made = [ref for ref in refs if "Making the Python environment" in trials.text(ref, "stderr")]
    assert len(made) == 1
    compiled = list((trials.home.environments / folder).glob("lib/python3*/site-packages/__pycache__/small.*.pyc"))
    assert len(compiled) == 1
    assert trials.end(trials.venv("small==1.0")).state is TrialState.SUCCEEDED
    assert trials.made() == [folder]


def test_the_mpiexec_of_a_made_environment_is_taken_rather_than_that_of_the_place(trials, tmp_path):
    real = Path(sys.prefix) / "mpich" / "bin" / "mpiexec"
    if not real.exists():
        pytest.skip(f"there is no {real}: sh .ci/mpi makes it")
    script = f'#!/bin/sh\necho "$0" >> {tmp_path}/used\nexec {real} "$@"\n'
    write_wheel(trials.wheels, "anympi", "1.0", scripts={"mpiexec": script})
    code = "import anympi, os\nreport(rank=int(os.environ['RANK']), all_ranks=True)\nprint(os.environ['PMI_SIZE'])"
    resources = Resources(workers_per_node=2)
    ref = trials.venv("anympi==1.0", code=code, launcher="mpi", resources=resources)
    assert trials.end(ref).state is TrialState.SUCCEEDED, trials.end(ref).reason
    assert trials.text(ref) == "2\n"
    (made,) = trials.made()
    used = {Path(line) for line in (tmp_path / "used").read_text().splitlines()}
    assert used == {trials.home.environments / made / "bin" / "mpiexec"}


def test_an_environment_without_mpiexec_says_so_where_the_place_has_none_either(trials):
    ref = trials.venv("small==1.0", launcher="mpi", env={"PATH": "/nonexistent"})
    told = "Neither the environment's requirements nor PATH bring an mpiexec. Add `mpich` to them."
    assert told in trials.end(ref).reason


def test_uv_makes_it_where_it_is_installed(trials, tmp_path):
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed: pip install uv")
    env = {"PATH": f"{Path(uv).parent}:/usr/bin:/bin", "UV_CACHE_DIR": str(tmp_path / "cache")}
    ref = trials.venv("small==1.0", env=env)
    assert trials.end(ref).state is TrialState.SUCCEEDED, trials.end(ref).reason
    assert "Resolved 2 packages" in trials.text(ref, "stderr")
    assert list(trials.home.environments.glob("*/lib/python3*/site-packages/__pycache__/small.*.pyc"))


def test_an_installation_that_fails_gives_the_installers_last_lines_and_leaves_nothing(trials):
    end = trials.end(trials.venv("small==9.9"))
    assert end.state is TrialState.FAILED
    assert end.detail["kind"] == "environment"
    assert "No matching distribution found for small==9.9" in end.reason
    assert "PIP_EXTRA_INDEX_URL" in end.reason
    assert trials.made() == []


def test_what_a_killed_maker_leaves_is_not_used_and_is_removed(trials, tmp_path):
    blocker = trials.wheels / "slow-1.tar.gz"
    os.mkfifo(blocker)  # reading it waits for ever
    ref = trials.venv(f"slow @ file://{blocker}")
    wait_until(trials.made, "the half-made environment")
    (half_made,) = trials.made()
    wait_until(lambda: "Processing" in trials.text(ref, "stderr"), "the installer")
    worker = trials.status(ref).detail["worker"]
    os.kill(worker[0], signal.SIGKILL)
    assert trials.end(ref).state is TrialState.FAILED
    assert trials.end(trials.venv("small==1.0")).state is TrialState.SUCCEEDED
    assert half_made not in trials.made()
    assert len(trials.made()) == 1


def test_a_stop_while_an_environment_is_made_ends_the_installer_and_leaves_nothing(trials):
    os.mkfifo(trials.wheels / "slow-1.tar.gz")
    ref = trials.venv(f"slow @ file://{trials.wheels}/slow-1.tar.gz")
    wait_until(lambda: "Processing" in trials.text(ref, "stderr"), "the installer")
    assert trials.status(ref).state is TrialState.PREPARING
    receipt = trials.backend.cancel(ref, 60.0)
    assert len(receipt.pids_ended) + len(receipt.pids_killed) >= 2
    assert not receipt.pids_left
    assert trials.status(ref).state is TrialState.CANCELLED
    assert trials.made() == []


def test_trials_that_waited_for_an_environment_that_fails_fail_with_it(trials):
    os.mkfifo(trials.wheels / "slow-1.tar.gz")
    requirement = f"slow @ file://{trials.wheels}/slow-1.tar.gz"
    first = trials.venv(requirement)
    wait_until(lambda: "Processing" in trials.text(first, "stderr"), "the installer")
    second = trials.venv(requirement)
    wait_until(lambda: "Another trial makes" in trials.text(second, "stderr"), "the second trial to wait")
    (trials.wheels / "slow-1.tar.gz").write_bytes(b"not an archive")
    reasons = {trials.end(ref).reason for ref in (first, second)}
    assert len(reasons) == 1
    assert "Making the Python environment" not in trials.text(second, "stderr")


def test_the_time_of_a_trial_begins_when_its_environment_is_made(trials):
    code = "import time\nwhile True:\n    time.sleep(0.01)"
    ref = trials.venv("small==1.0", code=code, timeout_s=0.5)
    wait_until(lambda: trials.status(ref).state is not TrialState.PREPARING, "the cell to begin")
    assert trials.end(ref).state is TrialState.FAILED
    assert "0.5 s" in trials.end(ref).reason
    assert len(trials.made()) == 1


def test_another_interpreter_runs_the_trial(trials):
    other = Path("/usr/bin/python3")
    if not other.exists() or other.resolve() == Path(sys.executable).resolve():
        pytest.skip("there is no second Python on this machine")
    ref = trials.start(EnvironmentKind.PYTHON, str(other), code="import sys\nprint(sys.executable)\nreport(ok=1)")
    assert trials.end(ref).state is TrialState.SUCCEEDED
    assert trials.text(ref).strip() == str(other)


def test_an_interpreter_that_is_not_there_is_named(trials):
    end = trials.end(trials.start(EnvironmentKind.PYTHON, "/opt/nowhere/python"))
    assert end.state is TrialState.FAILED
    assert "/opt/nowhere/python" in end.reason


def conda_environment(root: Path, name: str) -> Path:
    """Return an environment as conda lays it out."""
    prefix = root / "envs" / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "state").write_text(json.dumps({"env_vars": {"SET_BY_CONDA": "yes"}}))
    scripts = prefix / "etc" / "conda" / "activate.d"
    scripts.mkdir(parents=True)
    (scripts / "more.sh").write_text("echo activated\nexport SET_BY_SCRIPT=yes\n")
    return prefix


def test_a_conda_environment_is_found_by_name_and_is_activated(trials, tmp_path):
    prefix = conda_environment(tmp_path / "conda", "torch2")
    code = """
        import os, shutil, sys
        print(sys.prefix, os.environ["CONDA_PREFIX"], os.environ["CONDA_DEFAULT_ENV"], shutil.which("python"))
        print(os.environ["SET_BY_CONDA"], os.environ["SET_BY_SCRIPT"])
        report(ok=1)
    """
    env = {"MAMBA_ROOT_PREFIX": str(tmp_path / "conda")}
    for value in ("torch2", str(prefix)):
        ref = trials.start(EnvironmentKind.CONDA, value, code=code, env=env)
        assert trials.end(ref).state is TrialState.SUCCEEDED, trials.end(ref).reason
        first, second = trials.text(ref).splitlines()
        assert first.split() == [str(prefix), str(prefix), "torch2", str(prefix / "bin" / "python")]
        assert second == "yes yes"
    end = trials.end(trials.start(EnvironmentKind.CONDA, "torch3", env=env))
    assert "no conda environment 'torch3'" in end.reason
    assert "torch2" in end.reason


def test_what_another_interpreter_has_is_asked_of_it_and_nothing_of_the_notebooks_own(trials, tmp_path):
    inspect = trials.backend.inspect_python
    assert inspect(PythonEnvironment(), ["numpy"]) == []
    prefix = conda_environment(tmp_path / "conda", "empty")
    (found,) = inspect(PythonEnvironment(EnvironmentKind.CONDA, str(prefix)), ["numpy", "not-there"])
    assert found.versions == {"numpy": None, "not-there": None}
    assert found.python_version == ".".join(map(str, sys.version_info[:3]))
    (missing,) = inspect(PythonEnvironment(EnvironmentKind.PYTHON, "/opt/nowhere/python"), ["numpy"])
    assert "/opt/nowhere/python cannot be run" in missing.fault


def test_a_full_disk_there_is_named_and_nothing_is_left(trials):
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small disk needs root on Linux")
    root = trials.home.environments
    root.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", root], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        write_wheel(trials.wheels, "big", "1", f"text = {'x' * 4_000_000!r}")
        end = trials.end(trials.venv("big==1"))
        assert end.state is TrialState.FAILED
        assert f"the disk of {root}" in end.reason
        assert "is full" in end.reason
        assert trials.made() == []
    finally:
        subprocess.run(["umount", "-l", root], check=True)
