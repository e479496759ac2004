"""Trials whose ranks a launcher starts: torchrun and mpiexec, on this machine."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from tests.fault.several_workers import WAITS, Running

pytestmark = pytest.mark.fault
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
REDUCE = """
    import os, torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    report(total=total)
    print(rank, world_size, os.environ["LOCAL_RANK"], os.environ["NODE_RANK"], os.environ["MASTER_ADDR"])
"""
BARRIER = """
from mpi4py import MPI
import os, sys, time
world = MPI.COMM_WORLD
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def mpi_python(kind: str) -> str:
    python = Path(sys.prefix) / kind / "bin" / "python"
    if not (python.parent / "mpiexec").exists():
        pytest.skip(f"there is no {python.parent}/mpiexec: sh .ci/mpi makes it")
    return str(python)


@needs_torch
@pytest.mark.long  # ranks of test_several_workers.py reduce, too, and torchrun starts those below
def test_torchrun_starts_the_ranks_and_a_cell_that_stays_in_its_group_ends_well(home: Home) -> None:
    running = Running(home, REDUCE, 2, launcher="torchrun")
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), running.printed(wire.LAUNCHER_LOG, 0)
    assert [running.printed(wire.STDOUT, rank) for rank in range(2)] == [f"{k} 2 {k} 0 127.0.0.1\n" for k in range(2)]
    for rank in range(2):
        assert '{"total":3.0}' in running.printed(wire.METRICS, rank)
    rows = end.detail["workers"]
    assert [(row["rank"], row["exit_code"], row["signal"]) for row in rows] == [(0, 0, None), (1, 0, None)]


@needs_torch
def test_under_torchrun_the_first_rank_that_fails_is_named_and_nothing_is_left(home: Home) -> None:
    waits = WAITS.replace("while True:", "while rank != 1 or not others_have_begun():")
    code = f"""
def others_have_begun():
    import os
    return os.path.exists("../stdout") and "begun" in open("../stdout").read()

{waits}
raise ValueError('bad batch')
"""
    running = Running(home, code, 2, launcher="torchrun")
    end = running.finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 1 failed: ValueError: bad batch.")
    assert "ValueError: bad batch" in running.printed(wire.STDERR, 1)
    assert end.detail["exit_code"] == 1
    running.assert_nothing_left()


@needs_torch
def test_of_what_torchrun_says_of_a_rank_that_cannot_tell_its_end_the_cause_is_shown(home: Home) -> None:
    code = "import os, time\nif rank == 1:\n    os.kill(os.getppid(), 9)\ntime.sleep(1000)"  # what would tell it
    end = Running(home, code, 2, launcher="torchrun").finish()
    assert end.state is TrialState.FAILED
    assert "The launcher torchrun ended with exit code 1; it said: traceback : Signal 9 (SIGKILL)" in end.reason


@needs_torch
def test_an_elastic_trial_survives_the_kill_of_a_rank(home: Home) -> None:
    code = """
        import os, signal, time
        is_first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        begun = 0 if is_first else checkpoint.load(0)
        print("from", begun, flush=True)
        for step in range(begun, 6):
            while step == 3 and is_first:
                if rank == 1 and checkpoint.load(0) == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.01)
            report(step=step, loss=1.0)
            if rank == 0 and is_first:  # a rank that begins again later than the other finds the same
                checkpoint.save(step + 1, step)
    """
    running = Running(home, code, 2, launcher="torchrun", elastic=True)
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), running.printed(wire.LAUNCHER_LOG, 0)
    for rank in range(2):
        assert running.printed(wire.STDOUT, rank) == "from 0\nfrom 3\n"
        assert '["m",5,' in running.printed(wire.METRICS, rank)


@needs_torch
@pytest.mark.long  # the trial above is killed and goes on alike
def test_ranks_of_an_elastic_trial_reduce_again_after_the_kill_of_one(home: Home) -> None:
    code = """
        import os, signal, torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        begun = checkpoint.load(0)
        print("from", begun, flush=True)
        for step in range(begun, 6):
            total = torch.ones(1)
            dist.all_reduce(total)
            if rank == 1 and step == 3 and begun == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            report(step=step, total=total)
            if rank == 0:
                checkpoint.save(step + 1, step)
    """
    running = Running(home, code, 2, launcher="torchrun", elastic=True)
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), running.printed(wire.LAUNCHER_LOG, 0)
    first, again = running.printed(wire.STDOUT, 1).splitlines()
    assert first == "from 0"
    assert again in {"from 3", "from 4"}
    assert '["m",5,' in running.printed(wire.METRICS, 0)


def test_torchrun_without_torch_says_what_to_install(home: Home) -> None:
    (home.root / "empty" / "torch").mkdir(parents=True)
    (home.root / "empty" / "torch" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    end = Running(home, "pass", 2, launcher="torchrun", env={"PYTHONPATH": str(home.root / "empty")}).finish()
    assert end.state is TrialState.FAILED
    assert "The launcher torchrun ended with exit code 1" in end.reason
    assert "No module named 'torch'" in end.reason
    assert "PyTorch was expected where trials run" in end.reason


@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_mpi4py_reduces_over_ranks_that_mpiexec_starts(home: Home, kind: str) -> None:
    code = f"{BARRIER}\nreport(total=float(world.allreduce(rank + 1)))\nprint(world.rank, rank, world_size)"
    running = Running(home, code, 3, launcher="mpi", python=mpi_python(kind))
    end = running.finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), running.printed(wire.LAUNCHER_LOG, 0)
    assert [running.printed(wire.STDOUT, rank) for rank in range(3)] == [f"{k} {k} 3\n" for k in range(3)]
    assert '{"total":6.0}' in running.printed(wire.METRICS, 2)


@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_under_mpi_a_rank_that_fails_while_others_wait_for_it_is_named(home: Home, kind: str) -> None:
    code = f"{BARRIER}\nif rank == 1:\n    raise ValueError('bad shard')\nworld.Barrier()"
    end = Running(home, code, 3, launcher="mpi", python=mpi_python(kind)).finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("Rank 1 failed: ValueError: bad shard.")
    assert (end.detail["exit_code"], end.detail["signal"]) == (1, None)


@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_under_mpi_a_killed_rank_has_the_same_exit_code_whatever_mpiexec_says(home: Home, kind: str) -> None:
    code = f"{BARRIER}\nif rank == 2:\n    os.kill(os.getpid(), 9)\nworld.Barrier()"
    end = Running(home, code, 3, launcher="mpi", python=mpi_python(kind)).finish()
    assert end.reason.startswith("Rank 2 failed: Killed by signal 9 (SIGKILL).")
    assert (end.detail["exit_code"], end.detail["signal"]) == (None, signal.SIGKILL)


ABORTS = f"{BARRIER}\nif rank == 1:\n    print('bad shard', flush=True)\n    world.Abort(7)\nworld.Barrier()"


def test_a_rank_that_aborts_all_of_open_mpi_is_named_with_its_last_words(home: Home) -> None:
    end = Running(home, ABORTS, 3, launcher="mpi", python=mpi_python("openmpi")).finish()
    assert end.reason.startswith("Rank 1 failed: The worker ended with exit code 7 and gave no reason")
    assert "its stdout ends with: bad shard" in end.reason
    assert (end.state, end.detail["exit_code"], end.detail["signal"]) == (TrialState.FAILED, 7, None)


def test_a_rank_that_aborts_all_of_mpich_is_named_if_it_could_say_so(home: Home) -> None:
    end = Running(home, ABORTS, 3, launcher="mpi", python=mpi_python("mpich")).finish()
    assert end.state is TrialState.FAILED
    if end.reason.startswith("Rank 1 failed: The worker ended with exit code 7"):
        assert "application called MPI_Abort(MPI_COMM_WORLD, 7)" in end.reason
        assert end.detail["exit_code"] == 7
    else:  # its mpiexec kills all ranks as soon as it knows
        assert end.reason.startswith(
            "The launcher mpi ended with exit code 7; it said nothing. A rank has called MPI_A"
        )


SHARES_MEMORY = f"""{BARRIER}
world.Barrier()
mapped = {{line.split()[5] for line in open("/proc/self/maps") if "/dev/shm/" in line and "(deleted)" not in line}}
print("begun", *mapped, flush=True)
world.Barrier()
"""
ENDS = {"fails": "if rank == 1: raise ValueError()", "is killed": "if rank == 1: os.kill(os.getpid(), 9)",
        "aborts": "if rank == 1: world.Abort(7)", "is cancelled": ""}  # fmt: skip


BY_DEFAULT = [("mpich", "is killed"), ("openmpi", "is killed"), ("openmpi", "is cancelled")]
LONG = [(kind, end) for kind in ("mpich", "openmpi") for end in ENDS if (kind, end) not in BY_DEFAULT]


@pytest.mark.parametrize(("kind", "end"), [*BY_DEFAULT, *(pytest.param(*one, marks=pytest.mark.long) for one in LONG)])
def test_a_trial_under_mpi_leaves_no_shared_memory_however_it_ends(home: Home, kind: str, end: str) -> None:
    code = f"{SHARES_MEMORY}\n{ENDS[end]}\nwhile True: time.sleep(0.05)"
    running = Running(home, code, 2, launcher="mpi", python=mpi_python(kind))
    if end == "is cancelled":
        running.begun()
        running.backend.cancel(running.ref, 0.5)
    assert running.finish().state in {TrialState.FAILED, TrialState.CANCELLED}
    mapped = [Path(path) for rank in range(2) for path in running.printed(wire.STDOUT, rank).split()[1:]]
    assert mapped
    assert not [path.name for path in mapped if path.exists()]


def test_the_mpiexec_beside_the_interpreter_of_the_environment_is_used(home: Home) -> None:
    chosen = PythonEnvironment(EnvironmentKind.PYTHON, mpi_python("mpich"))
    end = Running(home, "pass", 2, launcher="mpi", python_environment=chosen).finish()
    assert (end.state, end.reason) == (TrialState.SUCCEEDED, "")


def test_the_mpiexec_of_a_conda_environment_is_used(home: Home, tmp_path: Path) -> None:
    programs = Path(mpi_python("mpich")).parent
    prefix = tmp_path / "conda" / "envs" / "mpi"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "bin").mkdir()
    for name in ("python", "mpiexec"):
        (prefix / "bin" / name).write_text(f'#!/bin/sh\nexec {programs / name} "$@"\n')
        (prefix / "bin" / name).chmod(0o700)
    code = "from mpi4py import MPI\nreport(total=MPI.COMM_WORLD.allreduce(rank))"
    for value, state in ((str(prefix), TrialState.SUCCEEDED), (f"{prefix}2", TrialState.FAILED)):
        chosen = PythonEnvironment(EnvironmentKind.CONDA, value)
        end = Running(home, code, 2, launcher="mpi", python_environment=chosen, experiment_id=value[-4:]).finish()
        assert end.state is state, end.reason
    assert "is not a conda environment" in end.reason


def test_without_an_mpiexec_the_reason_says_what_to_install(home: Home) -> None:
    end = Running(home, "pass", 2, launcher="mpi", env={"PATH": "/nonexistent"}).finish()
    assert end.state is TrialState.FAILED
    assert end.reason.startswith("There is no mpiexec beside")
    assert "-m pip install mpi4py mpich" in end.reason


def test_an_mpiexec_that_ignores_signals_is_killed_with_its_daemons(home: Home, tmp_path: Path) -> None:
    program = tmp_path / "mpiexec"
    program.write_text("""#!/bin/sh
        if [ "$1" = --version ]; then echo 'HYDRA build details:'; exit; fi
        trap '' TERM INT
        setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
        shift 2
        "$@" &
        PMI_RANK=1 MPI_LOCALRANKID=1 "$@" &
        while :; do sleep 1; done
    """)
    program.chmod(0o700)
    running = Running(home, WAITS, 2, launcher="mpi", env={"MPIEXEC": str(program), "PMI_RANK": "0"})
    running.begun()
    receipt = running.backend.cancel(running.ref, 0.5)
    end = running.status()
    assert end.state is TrialState.CANCELLED, (end.reason, receipt)
    assert receipt.pids_left == ()
    assert receipt.pids_killed != ()
    running.assert_nothing_left()
