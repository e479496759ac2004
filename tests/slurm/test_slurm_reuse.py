"""Long jobs that run many trials one after another, on a real cluster."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.core.backend import Backend, BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, trial_of, wait_for_end, wait_until
from jupyter_autotrain.testing.harness import WAITS
from tests.labs.slurm_lab import SlurmLab

SECRET = "s3cr3t-t0ken-0123456789"
TELLS_JOB = "import os\nprint(os.environ['SLURM_JOB_ID'])"
Make = Callable[..., SlurmBackend]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def make(cluster: SlurmLab, home: Home) -> Make:
    def backend(reuse: int = 1, **options: object) -> SlurmBackend:
        return SlurmBackend(Profile("cluster", "slurm", {"reuse": reuse, **options}), BackendContext(home))

    return backend


def start(backend: SlurmBackend, home: Home, code: str, number: int, **spec: object) -> JobRef:
    trial = trial_of(home, code, experiment_id=f"e{number}", **spec)  # cells of their own
    return backend.submit(trial, Placement(), {})


def status(backend: SlurmBackend, ref: JobRef) -> JobStatus:
    return backend.poll([ref])[0]


def read(backend: SlurmBackend, ref: JobRef) -> bytes:
    return backend.read([Cursor(ref, wire.STDOUT, 0)])[0].data


def begun(backend: SlurmBackend, ref: JobRef) -> None:
    wait_until(lambda: status(backend, ref) and b"begun" in read(backend, ref), f"{ref.job_id} running")


def end(backend: SlurmBackend, ref: JobRef) -> JobStatus:
    return wait_for_end(backend, ref)


def reason(backend: SlurmBackend, ref: JobRef, word: str) -> str:
    def with_word() -> str | None:
        text = status(backend, ref).reason
        return text if word in text else None

    return wait_until(with_word, f"{word!r} as the reason of {ref.job_id}")


def files(home: Home) -> list[str]:
    return sorted(str(path.relative_to(home.root)) for path in (home.root / "slurm").rglob("*") if path.is_file())


def test_many_trials_run_in_one_job_and_nothing_is_left_when_no_more_come(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make(reuse_idle=0.5)
    first = start(backend, home, WAITS + "\n" + TELLS_JOB, 1)
    begun(backend, first)
    refs = [start(backend, home, TELLS_JOB, number) for number in range(2, 10)]
    assert len(cluster.run("squeue", "--noheader").splitlines()) == 1
    reason(backend, refs[-1], "waits for its turn in a pilot job (Slurm job ")
    backend.put(first, wire.STOP_FILE, b"")
    assert [end(backend, ref).state for ref in refs] == [TrialState.SUCCEEDED] * 8
    assert len({read(backend, ref) for ref in refs}) == 1
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "the pilot's end")
    assert end(backend, first).state is TrialState.EARLY_STOPPED
    assert files(home) == ["slurm/submit.lock"]
    assert list((home.root / "slurm" / "pools").iterdir()) == []


def test_there_are_as_many_pilots_as_allowed_and_cancelling_leaves_them(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make(2)
    refs = [start(backend, home, WAITS, number) for number in range(1, 5)]
    for ref in refs[:2]:
        begun(backend, ref)
    jobs = cluster.run("squeue", "--noheader", "--format=%A").split()
    assert len(jobs) == 2
    waiting = backend.cancel(refs[2], 1.0)
    assert (waiting.pids_left, status(backend, refs[2]).state) == ((), TrialState.CANCELLED)
    assert read(backend, refs[2]) == b""
    running = backend.cancel(refs[0], 1.0)
    assert running.pids_left == ()
    assert running.pids_ended or running.pids_killed
    assert status(backend, refs[0]).state is TrialState.CANCELLED
    begun(backend, refs[3])
    assert sorted(cluster.run("squeue", "--noheader", "--format=%A").split()) == sorted(jobs)
    assert status(backend, refs[1]).state is TrialState.RUNNING


def test_when_a_pilot_is_cancelled_in_slurm_those_that_wait_run_in_another_one(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make()
    first = start(backend, home, WAITS, 1)
    begun(backend, first)
    rest = [start(backend, home, TELLS_JOB, number) for number in (2, 3)]
    job = cluster.run("squeue", "--noheader", "--format=%A").strip()
    cluster.run("scancel", job)
    ended = end(backend, first)
    assert ended.state is TrialState.CANCELLED
    assert "Cancelled in Slurm" in ended.reason
    again = make()  # a manager that was started anew goes on with what is there
    assert [end(again, ref).state for ref in rest] == [TrialState.SUCCEEDED] * 2
    said = {read(again, ref).decode().strip() for ref in rest}
    assert len(said) == 1
    assert said != {job}


def test_a_trial_whose_supervisor_is_killed_is_lost_and_the_pilot_goes_on(make: Make, home: Home) -> None:
    backend = make()
    code = "import os, signal\nprint('begun', flush=True)\nos.kill(os.getppid(), signal.SIGKILL)"
    killed = start(backend, home, code, 1)
    next_one = start(backend, home, "import os\nos.kill(os.getpid(), 9)", 2)
    last = start(backend, home, TELLS_JOB, 3)
    lost = end(backend, killed)
    assert (lost.state, "its supervisor ended (signal 9)" in lost.reason) == (TrialState.LOST, True)
    assert end(backend, next_one).state is TrialState.FAILED
    assert end(backend, last).state is TrialState.SUCCEEDED


def test_the_reason_why_slurm_lets_a_pilot_wait_is_that_of_its_trials(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    for _ in range(2):
        cluster.run("sbatch", "--cpus-per-task=8", "--output=/dev/null", "--wrap=sleep 1000")
    backend = make()
    ref = start(backend, home, "", 1, resources=Resources(cpus=8))
    assert "a pilot job, which waits for nodes that have" in reason(backend, ref, "next in line")
    backend.cancel(ref, 1.0)
    assert status(backend, ref).state is TrialState.CANCELLED


def test_an_interpreter_that_is_missing_fails_the_trials_and_brings_no_second_pilot(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make(python="/nowhere/python3")
    refs = [start(backend, home, "", number) for number in (1, 2)]
    for ref in refs:
        ended = end(backend, ref)
        assert ended.state is TrialState.FAILED
        assert "/nowhere/python3" in ended.reason
    assert not cluster.run("squeue", "--noheader")
    status(backend, refs[0])
    assert files(home) == ["slurm/submit.lock"]


def test_a_secret_reaches_its_own_trial_alone_and_its_file_goes(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    code = "import os\nprint(len(os.environ.get('API_KEY', '')), flush=True)\n" + WAITS
    trial = trial_of(home, code, secrets=("API_KEY",))
    with cluster.holding_jobs():  # its first run removes the file
        ref = backend.submit(trial, Placement(), {"API_KEY": SECRET})
        kept = list((home.root / "slurm").rglob("secrets-*"))
        assert [stat.S_IMODE(os.lstat(path).st_mode) for path in kept] == [0o600]
    begun(backend, ref)
    assert read(backend, ref).startswith(b"23\n")
    assert subprocess.run(["grep", "-rslF", SECRET, home.root], capture_output=True, check=False).stdout == b""
    other = start(backend, home, "import os\nprint('API_KEY' in os.environ)", 2)
    backend.put(ref, wire.STOP_FILE, b"")
    assert end(backend, other).state is TrialState.SUCCEEDED
    assert read(backend, other) == b"False\n"


@pytest.mark.long
class TestSlurmReuse(BackendContract):
    @pytest.fixture(autouse=True)
    def _cluster(self, cluster: SlurmLab) -> None:
        self.cluster = cluster

    def make(self, context: BackendContext) -> Backend:
        return SlurmBackend(Profile("cluster", "slurm", {"reuse": 4}), context)

    def is_gone(self, pid: int) -> bool:
        return self.cluster.is_gone(pid)

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])"
        ref = backend.submit(trial_of(home, code, resources=Resources(gpus=2)), Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"0,1\n"
