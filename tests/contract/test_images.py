"""Trials in containers: podman with an image of this machine's own files, and the exact commands of both programs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jupyter_autotrain.agent.environments import image
from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs import container_lab
from tests.labs.container_lab import IMAGE, ContainerLab

WAITS = """
    import os, signal, subprocess, sys, time
    def asked(*_):
        print("asked to end", flush=True)
        sys.exit()
    signal.signal(signal.SIGTERM, asked)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print("begun", flush=True)
    report(alive=1)
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    reason = container_lab.missing()
    if reason:
        pytest.skip(reason)
    made = ContainerLab(tmp_path_factory.mktemp("containers"))
    try:
        reason = container_lab.runs(made)
        if reason:
            pytest.skip(reason)
        yield made
    finally:
        made.close()


class Trials:
    def __init__(self, lab, home):
        self.lab = lab
        self.home = home
        self.backend = LocalBackend(Profile("local", "local"), BackendContext(home))

    def start(self, code, name=IMAGE, secrets=None, **spec):
        asked = PythonEnvironment(EnvironmentKind.IMAGE, name)
        env = {**self.lab.variables, **spec.pop("env", {})}
        trial = trial_of(self.home, code, python_environment=asked, env=env, secrets=tuple(secrets or ()), **spec)
        return self.backend.submit(trial, Placement(), secrets or {})

    def status(self, ref):
        return self.backend.poll([ref])[0]

    def end(self, ref):
        return wait_for_end(self.backend, ref)

    def text(self, ref, name="stdout"):
        path = Path(str(ref.data["directory"])) / name
        return path.read_text() if path.exists() else ""

    def begun(self, ref):
        wait_until(lambda: "begun" in self.text(ref), "the cell to begin")


@pytest.fixture
def trials(lab, tmp_path):
    yield Trials(lab, Home(tmp_path / "home"))
    assert lab.containers() == []


def processes_of(ref):
    needle = f"JUPYTER_AUTOTRAIN_TRIAL={ref.data['directory']}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(entry.name)] if needle in words else []
    return found


def test_a_cell_runs_in_the_container_and_its_results_come_out(trials):
    code = """
        import os, sys
        print(os.path.exists("/usr/bin/apt"), os.environ["TOLD"], os.environ["KEY"], sys.version_info[:2] >= (3, 9))
        open("made_inside", "w").write("x")
        answer = 42
        report(step=1, acc=0.5)
    """
    ref = trials.start(code, returns=("answer",), env={"TOLD": "yes"}, secrets={"KEY": "hidden-value"})
    end = trials.end(ref)
    assert end.state is TrialState.SUCCEEDED, (end.reason, trials.text(ref, "stderr"))
    assert trials.text(ref).split() == ["False", "yes", "***", "True"]
    directory = Path(str(ref.data["directory"]))
    assert (directory / "outputs" / "answer.pkl").exists()
    assert (directory / "work" / "made_inside").stat().st_uid == os.getuid()
    assert b'{"acc":0.5}' in (directory / "metrics").read_bytes()
    assert not list(directory.glob("control/*"))


@pytest.mark.long
def test_a_cell_that_raises_fails_with_its_traceback(trials):
    end = trials.end(trials.start("x = 1\nraise ValueError('no luck')"))
    assert end.state is TrialState.FAILED
    assert "no luck" in end.reason
    assert end.detail["kind"] == "exception"


def test_a_stop_ends_the_whole_container(trials):
    ref = trials.start(WAITS)
    trials.begun(ref)
    assert len(processes_of(ref)) >= 3
    receipt = trials.backend.cancel(ref, 60.0)
    assert not receipt.pids_left
    assert trials.status(ref).state is TrialState.CANCELLED
    assert "asked to end" in trials.text(ref)
    assert processes_of(ref) == []


def test_a_container_ends_with_its_killed_supervisor(trials):
    ref = trials.start(WAITS)
    trials.begun(ref)
    os.kill(trials.status(ref).detail["supervisor"][0], signal.SIGKILL)
    assert trials.end(ref).state is TrialState.LOST
    wait_until(lambda: not processes_of(ref), "the container's end")
    trials.lab.podman("rm", "--force", "--all")  # podman's own clean-up ends with the trial when it comes too late


@pytest.mark.long
def test_memory_is_limited_and_the_reason_says_so(trials):
    code = "print('begun', flush=True)\nheld = bytearray(400_000_000)\nheld[::4096] = b'x' * len(held[::4096])"
    end = trials.end(trials.start(code, resources=Resources(memory_bytes=150_000_000)))
    assert end.state is TrialState.FAILED
    assert "memory" in end.reason.lower()


def test_an_image_that_is_not_there_is_named_with_what_podman_says(trials):
    end = trials.end(trials.start("x = 1", name="localhost/not-there:1"))
    assert end.state is TrialState.FAILED
    assert "localhost/not-there:1" in end.reason


@pytest.mark.long
def test_what_the_image_has_is_asked_of_it(trials, monkeypatch):
    for name, value in trials.lab.variables.items():
        monkeypatch.setenv(name, value)
    (found,) = trials.backend.inspect_python(PythonEnvironment(EnvironmentKind.IMAGE, IMAGE), ["numpy"])
    assert found.versions == {"numpy": None}
    (unknown,) = trials.backend.inspect_python(PythonEnvironment(EnvironmentKind.IMAGE, "localhost/no:1"), ["numpy"])
    assert (unknown.python_version, unknown.fault) == ("", "")


@pytest.mark.parametrize("runtime", ["podman", "docker"])
def test_the_command_of_a_container(runtime, monkeypatch):
    monkeypatch.setattr(image.os, "getuid", lambda: 1000)
    monkeypatch.setattr(image.os, "getgid", lambda: 1001)
    trial = {
        "directory": "/home/ada/at/trials/1", "gpus": ["GPU-a", "GPU-b"],
        "resources": {"memory_bytes": 8_000_000_000, "cpus": 2.5},
    }  # fmt: skip
    environ = {"PATH": "/usr/bin", "HOME": "/home/ada", "LD_LIBRARY_PATH": "/opt", "MODE": "fast", "TOKEN": "secret"}
    argv = image.command(trial, "lab/torch:2", f"/usr/bin/{runtime}", ["start.py", "x"], environ, 1)
    own = {
        "podman": [
            "--sig-proxy=false", "--preserve-fds=2", "--userns=keep-id",
            "--device=nvidia.com/gpu=GPU-a", "--device=nvidia.com/gpu=GPU-b",
        ],
        "docker": ["--user=1000:1001", '--gpus="device=GPU-a,GPU-b"'],
    }  # fmt: skip
    package = str(Path(image.__file__).parents[2])
    assert sorted(argv) == sorted([
        f"/usr/bin/{runtime}", "run", "--rm", "--interactive", "--name", image.container_name(trial["directory"], 1),
        "--network=host", "--ipc=host", "--security-opt=label=disable", "--workdir=/home/ada/at/trials/1",
        "--entrypoint=python3", "--memory=8000000000b", "--cpus=2.5", "--env=HOME=/tmp", "--env=MODE", "--env=TOKEN",
        "--mount=type=bind,src=/home/ada/at/trials/1,dst=/home/ada/at/trials/1",
        f"--mount=type=bind,src={package},dst={package},readonly", "lab/torch:2", "-B", "start.py", "x",
        *own[runtime],
    ])  # fmt: skip
    assert argv[-4:] == ["lab/torch:2", "-B", "start.py", "x"]
    assert "secret" not in " ".join(argv)
