"""Tests of what Slurm, its daemons and its administrators do to a trial, on a real cluster."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.backends.slurm.job_script import Batcher
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from jupyter_autotrain.testing.harness import WAITS
from tests.labs.slurm_lab import SlurmLab

SECRET = "s3cr3t-t0ken-0123456789"
COUNTS = """
import time
first = checkpoint.load(0)
print("begun", first, flush=True)
for step in range(first, 10_000):
    report(step=step, loss=1.0)
    checkpoint.save(step + 1, step=step)
    time.sleep(0.05)
    if should_stop():
        break
"""
Make = Callable[..., SlurmBackend]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def make(cluster: SlurmLab, home: Home) -> Make:
    return lambda **options: SlurmBackend(Profile("cluster", "slurm", options), BackendContext(home))


def status(backend: SlurmBackend, ref: JobRef) -> JobStatus:
    return backend.poll([ref])[0]


def start(backend: SlurmBackend, home: Home, code: str, **spec: object) -> JobRef:
    return backend.submit(trial_of(home, code, **spec), Placement(), {})


def read(backend: SlurmBackend, ref: JobRef, stream: str = wire.STDOUT) -> bytes:
    return backend.read([Cursor(ref, stream, 0)])[0].data


def begun(backend: SlurmBackend, ref: JobRef, word: bytes = b"begun") -> None:
    wait_until(lambda: status(backend, ref) and word in read(backend, ref), f"{word!r} from {ref.job_id}")


def end(backend: SlurmBackend, ref: JobRef) -> JobStatus:
    return wait_for_end(backend, ref)


def reason(backend: SlurmBackend, ref: JobRef, word: str) -> str:
    def with_word() -> str | None:
        text = status(backend, ref).reason
        return text if word in text else None

    return wait_until(with_word, f"{word!r} as the reason of {ref.job_id}")


def test_trials_that_are_submitted_together_are_one_array(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    backend._batcher = Batcher(backend._hand_over, window_s=8.0)
    trials = [trial_of(home, "print(params['x'])", number=n, params={"x": n}) for n in range(1, 7)]
    with ThreadPoolExecutor(6) as pool:
        refs = list(pool.map(lambda trial: backend.submit(trial, Placement(), {}), trials))
    jobs = cluster.run("squeue", "--noheader", "--states=all", "--array", "--format=%F").split()
    newest = [job for job in jobs if job == max(jobs, key=int)]
    assert len(newest) == 6
    assert [end(backend, ref).state for ref in refs] == [TrialState.SUCCEEDED] * 6
    assert [read(backend, ref) for ref in refs] == [f"{n}\n".encode() for n in range(1, 7)]
    assert not list((home.root / "slurm" / "batches").iterdir())
    assert not list((home.root / "slurm" / "entries").iterdir())


def test_the_reason_why_slurm_lets_a_job_wait_is_told(make: Make, home: Home) -> None:
    backend = make()
    first = start(backend, home, WAITS, number=2, resources=Resources(cpus=8))
    second = start(backend, home, WAITS, number=3, resources=Resources(cpus=8))
    begun(backend, first)
    begun(backend, second)
    third = start(backend, home, WAITS, number=4, resources=Resources(cpus=8))
    assert "it is next in line (Slurm job " in reason(backend, third, "waits for nodes that have what it asks for")
    receipt = backend.cancel(third, 1.0)
    assert (receipt.pids_left, status(backend, third).state) == ((), TrialState.CANCELLED)
    for one in (first, second):
        backend.cancel(one, 1.0)


def test_scancel_from_outside_is_told_as_such(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    ref = start(backend, home, WAITS)
    begun(backend, ref)
    cluster.run("scancel", "--user=root")
    ended = end(backend, ref)
    assert ended.state is TrialState.CANCELLED
    assert "Cancelled in Slurm" in ended.reason
    wait_until(lambda: not any("start.py slurm_task" in line for line in cluster.commands()), "the processes' end")


@pytest.mark.long
def test_the_time_limit_of_the_job_is_a_timeout_with_advice(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make(time=60)
    ref = start(backend, home, WAITS)
    begun(backend, ref)
    number = cluster.run("squeue", "--noheader", "--format=%A").split()[0]
    assert "TimeLimit=00:01:00" in cluster.run("scontrol", "show", "job", number)
    cluster.run("scontrol", "update", f"jobid={number}", "endtime=now")
    ended = end(backend, ref)
    assert ended.state is TrialState.FAILED
    assert ended.reason.startswith("Timeout: Slurm ended job")
    assert "`timeout:`" in ended.reason


def test_a_job_that_is_preempted_says_so(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    refs = [start(backend, home, COUNTS, number=n, resources=Resources(cpus=8)) for n in (1, 2)]
    for ref in refs:
        begun(backend, ref)
    cluster.run("sbatch", "--partition=urgent", "--cpus-per-task=8", "--output=/dev/null", "--wrap=sleep 1")
    wait_until(lambda: any(status(backend, ref).state.is_final for ref in refs), "a preemption")
    found = [status(backend, ref) for ref in refs]
    ended = [one for one in found if one.state.is_final]
    assert [one.state for one in ended] == [TrialState.PREEMPTED]
    assert "higher priority" in ended[0].reason
    for ref in refs:
        backend.cancel(ref, 1.0)


def test_a_requeued_job_goes_on_from_its_checkpoint_and_no_line_is_lost_or_twice(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make(requeue=True)
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    wait_until(lambda: read(backend, ref, wire.METRICS).count(b'"loss"') > 3, "some reports")
    number = cluster.run("squeue", "--noheader", "--format=%A").split()[0]
    cluster.run("scontrol", "requeue", number)
    reason(backend, ref, "restart 1")
    # Slurm lets a requeued job wait for two minutes; a start in the second of the requeue has a revoked credential.
    cluster.run("scontrol", "update", f"jobid={number}", "starttime=now+3")
    seen = set()

    def has_begun_again() -> bool:
        seen.add(status(backend, ref).state)
        return read(backend, ref).count(b"begun") == 2

    wait_until(has_begun_again, "the second run")
    assert seen <= {TrialState.PREPARING, TrialState.RUNNING}
    backend.put(ref, wire.STOP_FILE, b"")
    assert end(backend, ref).state in {TrialState.SUCCEEDED, TrialState.EARLY_STOPPED}
    again = int(read(backend, ref).splitlines()[1].split()[1])
    assert again > 0
    steps = [json.loads(line)[1] for line in read(backend, ref, wire.METRICS).splitlines() if b'"loss"' in line]
    assert sorted(set(steps)) == list(range(len(set(steps))))


@pytest.mark.long
def test_while_the_controller_is_down_a_running_trial_is_in_doubt_and_never_lost(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make()
    ref = start(backend, home, WAITS)
    begun(backend, ref)
    saved = cluster.folder / "state" / "job_state"  # what Slurm has not saved yet it forgets
    number = cluster.run("squeue", "--noheader", "--format=%A").split()[0]
    cluster.run("scontrol", "update", f"jobid={number}", "comment=it-runs")
    wait_until(lambda: saved.exists() and b"it-runs" in saved.read_bytes(), "the saved state")
    cluster.kill("slurmctld")
    wait_until(lambda: "does not answer" in status(backend, ref).doubt, "a doubt")
    cluster.start_controller()
    wait_until(lambda: not status(backend, ref).doubt, "an answer")
    assert status(backend, ref).state is TrialState.RUNNING
    backend.put(ref, wire.STOP_FILE, b"")
    assert end(backend, ref).state is TrialState.EARLY_STOPPED


@pytest.mark.long
def test_a_trial_that_is_submitted_while_the_controller_is_down_is_submitted_once_when_it_is_back(
    make: Make, home: Home, cluster: SlurmLab
) -> None:
    backend = make()
    cluster.kill("slurmctld")
    ref = start(backend, home, "print('ran')")
    found = status(backend, ref)
    assert not found.state.is_final
    cluster.start_controller()
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref) == b"ran\n"


@pytest.mark.long
def test_a_node_that_fails_loses_its_trial_with_that_reason(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    ref = start(backend, home, WAITS)
    begun(backend, ref)
    node = cluster.run("squeue", "--noheader", "--format=%N").split()[0]
    cluster.kill(node)
    for pid in cluster.pids("slurmstepd"):
        cluster.run("kill", "-KILL", str(pid))
    for line in cluster.run("ps", "-ewwo", "pid=,args=").splitlines():
        if "start.py slurm_task" in line:
            cluster.run("kill", "-KILL", line.split()[0])
    cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    ended = end(backend, ref)
    assert ended.state is TrialState.LOST
    assert f"{node} failed" in ended.reason
    assert "retry" in ended.reason


def test_what_slurm_refuses_is_told_in_its_words_and_leaves_nothing(make: Make, home: Home) -> None:
    with pytest.raises(BackendError, match=r"(?i)partition.*asked for .*--partition=nosuch"):
        start(make(partition="nosuch"), home, "")
    assert not list((home.root / "slurm" / "batches").iterdir())


@pytest.mark.long
def test_an_interpreter_that_is_missing_on_the_nodes_is_told(make: Make, home: Home) -> None:
    backend = make(python="/nowhere/python3")
    ended = end(backend, start(backend, home, ""))
    assert ended.state is TrialState.FAILED
    assert "/nowhere/python3" in ended.reason
    assert "`python`" in ended.reason


def test_a_secret_is_in_nothing_that_slurm_keeps(make: Make, home: Home, cluster: SlurmLab) -> None:
    backend = make()
    trial = trial_of(home, "import os\nprint(len(os.environ['API_KEY']), flush=True)\n" + WAITS, secrets=("API_KEY",))
    with cluster.holding_jobs():  # its first run removes the file
        ref = backend.submit(trial, Placement(), {"API_KEY": SECRET})
        kept = list((home.root / "slurm").rglob("secrets-*"))
        assert [stat.S_IMODE(os.lstat(path).st_mode) for path in kept] == [0o600]
    begun(backend, ref, f"{len(SECRET)}".encode())
    number = cluster.run("squeue", "--noheader", "--format=%A").split()[0]
    told = cluster.run("scontrol", "show", "job", "-dd", number) + cluster.run(
        "scontrol", "write", "batch_script", number, "-"
    )
    found = subprocess.run(["grep", "-rslF", SECRET, home.root, cluster.folder], capture_output=True, check=False)
    assert SECRET not in told
    assert found.stdout == b""
    backend.cancel(ref, 1.0)


def test_slurm_and_setup_give_variables_and_nothing_of_ours_leaks(
    make: Make, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_MANAGER", "1")
    code = "from os import environ as e\nprint('SLURMD_NODENAME' in e, e.get('OF_SETUP'), e.get('OF_THE_MANAGER'))"
    backend = make(setup=["export OF_SETUP=yes"])
    ref = start(backend, home, code)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref) == b"True yes None\n"


def test_a_workdir_of_its_own_holds_all_that_the_nodes_need(make: Make, home: Home, tmp_path: Path) -> None:
    backend = make(workdir=str(tmp_path / "shared"))
    ref = start(backend, home, "report(loss=1)\nopen('../outputs/made.txt', 'w').write('there')\nprint('ran')")
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref) == b"ran\n"
    assert b'"loss":1' in read(backend, ref, wire.METRICS)
    backend.fetch(ref, f"{wire.OUTPUTS}/made.txt", str(tmp_path / "made.txt"))
    assert (tmp_path / "made.txt").read_text() == "there"
    assert sorted(path.name for path in (tmp_path / "shared").iterdir())[:2] == ["agents", "batches"]
    assert not (home.root / "slurm").exists()
    receipt = backend.cancel(ref, 1.0)
    assert "it had ended before" in receipt.note
    wait_until(lambda: list(backend.experiments_there()) == ["e1"], "the supervisor's end")
    backend.remove_experiments(["e1"])
    assert list((tmp_path / "shared" / "jobs").glob("*/*")) == []


def test_code_in_a_workdir_goes_with_the_last_experiment_that_needs_it(make: Make, home: Home, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    backend = make(workdir=str(shared))
    for experiment in ("e1", "e2"):
        assert end(backend, start(backend, home, "", experiment_id=experiment)).state is TrialState.SUCCEEDED
    wait_until(lambda: len(backend.experiments_there()) == 2, "the supervisors' end")
    (code,) = (shared / "kept_bundles").iterdir()
    backend.remove_experiments(["e1"])
    assert code.is_dir()
    backend.remove_experiments(["e2"])
    assert list((shared / "kept_bundles").iterdir()) == []


def test_a_trial_that_was_elsewhere_goes_on_from_its_checkpoints_in_a_workdir(
    make: Make, home: Home, tmp_path: Path
) -> None:
    saved = home.trial("e1", 1, 1) / wire.CHECKPOINTS / "step-000000000010.pkl"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(pickle.dumps(10))
    backend = make(workdir=str(tmp_path / "shared"))
    ref = start(backend, home, "print('from', checkpoint.load(0))", attempt=2, resume_attempt=1)
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref) == b"from 10\n"
    wait_until(lambda: list(backend.experiments_there()) == ["e1"], "the supervisor's end")
    backend.remove_experiments(["e1"])
    assert list((tmp_path / "shared" / "jobs").glob("*/*")) == []


def test_clean_ends_and_removes_what_no_experiment_needs_and_leaves_that_of_others(
    make: Make, home: Home, cluster: SlurmLab, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    backend = make(workdir=str(shared))
    trial = trial_of(home, WAITS)
    backend.submit(trial, Placement(), {})
    other = SlurmBackend(Profile("cluster", "slurm", {"workdir": str(shared)}), BackendContext(Home(tmp_path / "two")))
    assert backend.leftovers(()) == []  # it is young
    for path in (shared / "batches").iterdir():
        os.utime(path, (0, 0))
    assert other.leftovers(()) == []
    assert backend.leftovers([trial.experiment_id]) == []
    (left,) = backend.leftovers(())
    assert left.startswith("Slurm job autotrain-")
    assert left.endswith(f" of {trial.experiment_id}")
    assert backend.remove_leftovers(()) == [left]
    assert list((shared / "batches").iterdir()) == []
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "the end of the job")
    assert backend.leftovers(()) == []


def test_the_nodes_are_an_inventory(make: Make) -> None:
    nodes = make().discover().nodes
    assert [node.name for node in nodes] == ["n1", "n2"]
    assert [(node.cpus, len(node.accelerators), node.accelerators[0].kind) for node in nodes] == [(8.0, 2, "lab")] * 2
