"""Trials that run are never called dead: damaged status files, starts that take long, hostile files, full disks."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep, time
from types import SimpleNamespace

import pytest

from jupyter_autotrain.backends import starting
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus, Profile
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.manager.context import Clocks
from jupyter_autotrain.manager.events import Event, JobUpdate
from jupyter_autotrain.manager.job_watcher import JobWatcher
from jupyter_autotrain.testing import trial_of, wait_until, write_bundle
from jupyter_autotrain.worker import processes

pytestmark = pytest.mark.fault

COUNTS = """
import subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("begun", child.pid, flush=True)
step = 0
while not should_stop():
    report(step=step, loss=1 / (step + 1))
    step += 1
    time.sleep(0.005)
"""


def local(home: Home) -> LocalBackend:
    return LocalBackend(Profile("local", "local"), BackendContext(home))


def directory_of(home: Home, trial: TrialSpec) -> Path:
    return BackendContext(home).directory(trial)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def place(home: Home) -> LocalBackend:
    return local(home)


def status(place: LocalBackend, ref: JobRef) -> JobStatus:
    return place.poll([ref])[0]


def text(place: LocalBackend, ref: JobRef, stream: str = wire.STDOUT) -> str:
    return place.read([Cursor(ref, stream, 0)])[0].data.decode()


def begun(place: LocalBackend, ref: JobRef) -> None:
    wait_until(lambda: "begun" in text(place, ref), "the cell's first word")


def finish(place: LocalBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: status(place, ref).state.is_final, "the end", within_s=60)
    return status(place, ref)


def nothing_left(directory: str) -> bool:
    return not processes.marked(wire.TRIAL_VARIABLE, directory)


def supervisor_gone(directory: str) -> None:
    wait_until(lambda: not processes.running("start_supervisor.py", directory), "the end of the supervisor")


def damage(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_bytes(b'{"state": "RUNN')


@pytest.mark.parametrize("names", [(wire.STATUS_FILE,), (wire.STATUS_FILE, wire.LOCK_FILE)])
def test_a_running_trial_with_a_damaged_status_goes_on_and_is_stopped_with_proof(
    place: LocalBackend, home: Home, names: tuple[str, ...]
) -> None:
    trial = trial_of(home, COUNTS)
    ref = place.submit(trial, Placement(), {})
    begun(place, ref)
    tree = processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial)))
    assert len(tree) == 2
    damage(directory_of(home, trial), *names)
    before = len(text(place, ref, wire.METRICS))
    assert "status.json is damaged" in status(place, ref).doubt
    assert local(home).submit(trial, Placement(), {}) == ref
    wait_until(lambda: len(text(place, ref, wire.METRICS)) > before, "more metrics")
    assert processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial))) == tree
    receipt = place.cancel(ref, 1.0)
    assert tree <= {*receipt.pids_ended, *receipt.pids_killed}
    assert nothing_left(str(directory_of(home, trial)))
    supervisor_gone(str(directory_of(home, trial)))
    assert status(place, ref).state is TrialState.CANCELLED


def test_a_status_file_that_somebody_deletes_is_written_again(place: LocalBackend, home: Home) -> None:
    trial = trial_of(home, COUNTS)
    ref = place.submit(trial, Placement(), {})
    begun(place, ref)
    (directory_of(home, trial) / wire.STATUS_FILE).unlink()
    assert not status(place, ref).state.is_final
    wait_until(lambda: status(place, ref).state is TrialState.RUNNING, "the status, written again")
    place.cancel(ref, 1.0)
    assert nothing_left(str(directory_of(home, trial)))


def test_a_folder_in_the_place_of_the_status_file_does_not_silence_the_supervisor(
    place: LocalBackend, home: Home
) -> None:
    code = "import os\nos.unlink('../status.json'); os.makedirs('../status.json/deep')\nprint('begun')"
    end = finish(place, place.submit(trial_of(home, code), Placement(), {}))
    assert end.state is TrialState.SUCCEEDED


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A start that goes on only once this file is there."""
    shim, gate = tmp_path / "start_supervisor.py", tmp_path / "gate"
    shim.write_text(
        textwrap.dedent(f"""
        import os, sys, time
        while not os.path.exists({str(gate)!r}):
            time.sleep(0.01)
        sys.path.insert(0, {str(Path(processes.__file__).parents[2])!r})
        from jupyter_autotrain.worker.supervisor_main import main
        main(sys.argv[1])
        """)
    )
    run = starting._run
    monkeypatch.setattr(starting, "_run", lambda argv, env: run([*argv[:3], str(shim), argv[4]], env))
    return gate


def test_a_start_that_takes_longer_than_anyone_waits_is_neither_failed_nor_made_twice(
    place: LocalBackend, home: Home, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_START_S", 0.05)
    trial = trial_of(home, "print('ran')")
    ref = place.submit(trial, Placement(), {})
    assert "being started" in status(place, ref).doubt
    assert place.submit(trial, Placement(), {}) == ref
    gate.touch()
    assert finish(place, ref).state is TrialState.SUCCEEDED
    assert text(place, ref) == "ran\n"
    supervisor_gone(str(directory_of(home, trial)))


def test_a_start_that_dies_half_way_is_lost_only_when_nothing_of_it_is_left(
    place: LocalBackend, home: Home, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_START_S", 0.05)
    trial = trial_of(home, "print('ran')")
    ref = place.submit(trial, Placement(), {})
    for pid in processes.running("start_supervisor.py", str(directory_of(home, trial))):
        os.kill(pid, 9)
    wait_until(lambda: status(place, ref).state is TrialState.LOST, "the proof")
    assert "never started" in status(place, ref).reason


@pytest.mark.parametrize("fate", [(None, ""), (-9, ""), (1, "OSError: [Errno 5] Input/output error")])
def test_a_start_that_only_seems_to_have_failed_is_looked_for(
    place: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch, fate: tuple[int | None, str]
) -> None:
    run = starting._run

    def seems_to_fail(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        run(argv, env)
        return fate

    monkeypatch.setattr(starting, "_run", seems_to_fail)
    trial = trial_of(home, COUNTS)
    ref = place.submit(trial, Placement(), {})
    begun(place, ref)
    assert len(processes.running("start_supervisor.py", str(directory_of(home, trial)))) == 1
    place.cancel(ref, 1.0)
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
    place: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch, fault: OSError | tuple[int, str]
) -> None:
    run, faults = starting._run, [fault] * 3

    def at_first(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        if not faults:
            return run(argv, env)
        now = faults.pop()
        if isinstance(now, OSError):
            raise now
        return now

    monkeypatch.setattr(starting, "_run", at_first)
    ref = place.submit(trial_of(home, "print('ran')"), Placement(), {})
    assert finish(place, ref).state is TrialState.SUCCEEDED
    assert text(place, ref) == "ran\n"


def test_a_look_that_fails_before_a_start_is_made_again(
    place: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, faults = starting.has_begun, [OSError(errno.EMFILE, "Too many open files")] * 2

    def at_first(directory: Path) -> bool:
        if faults:
            raise faults.pop()
        return look(directory)

    monkeypatch.setattr(starting, "has_begun", at_first)
    ref = place.submit(trial_of(home, "print('ran')"), Placement(), {})
    assert finish(place, ref).state is TrialState.SUCCEEDED
    assert text(place, ref) == "ran\n"


def test_a_machine_that_stays_out_of_descriptors_says_so(
    place: LocalBackend, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_FOR_NOW_S", 0.0)

    def never(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(starting, "_run", never)
    with pytest.raises(BackendError, match=r"too many files are open[^\n]*\n[^\n]*\nRaise `ulimit -n`"):
        place.submit(trial_of(home, ""), Placement(), {})


HOSTILE = {
    "a pipe": "os.unlink(F); os.mkfifo(F)",
    "a link to /dev/zero": "os.unlink(F); os.symlink('/dev/zero', F)",
    "a folder": "os.unlink(F); os.mkdir(F)",
    "brackets": "open(F, 'a').write('[' * 100_000 + '\\n')",
    "an endless line": "open(F, 'a').write('x' * (20 << 20) + '\\n')",
    "a hole of a gigabyte": "os.truncate(F, 1 << 30)",
    "half a character": r"""open(F, 'a').write('["m", 1, 1.0, {"\\ud800": 1.0}]\n["n", 1.0, "info", "\\ud800"]\n')""",
    "a step nobody can hold": """open(F, 'a').write('["m", 1' + '0' * 40 + ', 1.0, {"a": 1}]\\n')""",
    "a time nobody can hold": """open(F, 'a').write('["m", 1, 1e999, {"a": 1}]\\n')""",
    "bytes": "open(F, 'ab').write(bytes(range(256)) * 100)",
}


class Watched:
    """A job watcher with the events that it emits."""

    def __init__(self, place: LocalBackend) -> None:
        self.events: list[Event] = []
        self._pool = ThreadPoolExecutor(2)
        context = SimpleNamespace(clocks=Clocks(time, monotonic, sleep))
        self.watcher = JobWatcher(place, self.events.append, self._pool, context)  # type: ignore[arg-type] # all it asks for here

    def notes(self, job_id: str) -> list[str]:
        seen = [event for event in self.events if isinstance(event, JobUpdate) and event.job_id == job_id]
        return [text for event in seen for _, _, text, _ in event.frames.notes]

    def end(self, job_id: str) -> TrialState | None:
        seen = [event for event in self.events if isinstance(event, JobUpdate) and event.job_id == job_id]
        return next((event.status.state for event in seen if event.status.state.is_final), None)

    def points(self, job_id: str) -> int:
        seen = [event for event in self.events if isinstance(event, JobUpdate) and event.job_id == job_id]
        return sum(len(event.frames.points) for event in seen)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(lambda: (self.watcher.look(), condition())[1], what)


@pytest.mark.parametrize("deed", HOSTILE.values(), ids=HOSTILE)
def test_hostile_metrics_of_one_trial_stop_neither_the_manager_nor_another_trial(
    place: LocalBackend, home: Home, deed: str
) -> None:
    write_bundle(home.bundle("bad"), f"import os\nF = '../metrics'\nreport(a=1)\n{deed}\nreport(a=2)")
    bad, good = (trial_of(home, "report(a=1)\nprint('ran')", experiment_id=e) for e in ("bad", "good"))
    watched = Watched(place)
    for trial in (bad, good):
        watched.watcher.watch(trial, place.submit(trial, Placement(), {}), 0)
    watched.until(lambda: watched.end(good.job_id) is not None, "the end of the good trial")
    watched.until(lambda: watched.end(bad.job_id) is not None, "the end of the bad trial")
    assert (watched.end(good.job_id), watched.points(good.job_id)) == (TrialState.SUCCEEDED, 1)
    assert watched.end(bad.job_id) is TrialState.SUCCEEDED
    assert watched.notes(good.job_id) == []
    assert watched.notes(bad.job_id)


@pytest.mark.parametrize("name", ["status.json", "stdout", "stderr", "lock", "trial.json", "checkpoints", "outputs"])
@pytest.mark.parametrize("deed", ["os.mkfifo(F)", "os.symlink('/dev/zero', F)", "os.symlink('..', F)"])
def test_whatever_lies_in_the_place_of_a_trials_file_it_ends_and_nobody_waits(
    place: LocalBackend, home: Home, name: str, deed: str
) -> None:
    remove = "shutil.rmtree(F) if os.path.isdir(F) else os.unlink(F)"
    trial = trial_of(home, f"import os, shutil\nF = '../{name}'\n{remove}\n{deed}\nprint('begun')")
    ref = place.submit(trial, Placement(), {})
    end = finish(place, ref)
    assert end.state is TrialState.SUCCEEDED
    for stream in wire.STREAMS:
        place.read([Cursor(ref, stream, 0)])
    supervisor_gone(str(directory_of(home, trial)))


def test_a_hostile_file_among_the_checkpoints_does_not_keep_a_second_attempt_from_going_on(
    place: LocalBackend, home: Home
) -> None:
    code = """
        import os
        print("from", checkpoint.load(0), sorted(os.listdir(checkpoint.path)))
        checkpoint.save(10, step=10)
        for name in ("step-000000000011.pkl", "own"):
            if not os.path.lexists(f"{checkpoint.path}/{name}"):
                os.mkfifo(f"{checkpoint.path}/{name}")
        os.symlink("/dev/zero", f"{checkpoint.path}/zero")
        open(f"{checkpoint.path}/kept", "w").write("mine")
    """
    first = trial_of(home, code)
    finish(place, place.submit(first, Placement(), {}))
    ref = place.submit(trial_of(home, code, attempt=2, resume_attempt=1), Placement(), {})
    assert finish(place, ref).state is TrialState.SUCCEEDED
    assert text(place, ref) == "from 10 ['kept']\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small disk needs root on Linux")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this container may not mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file:
        block = b"\0" * 65536
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


EATS = """
    import sys, time
    report(loss=1)
    print("begun", flush=True)
    with open("ballast", "wb", buffering=0) as file:
        {}
"""
FULL = {
    "an error": "while True: file.write(bytes(65536))",
    "a print": "\n".join(
        ["try:", *("    " * 3 + line for line in ("while True: file.write(bytes(65536))",)),
         "        except OSError: pass", "        for k in range(10_000): print(k, 'x' * 100)"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("deed", FULL.values(), ids=FULL)
def test_a_trial_that_fills_the_disk_says_so_and_not_only_an_exit_code(small_disk: Path, deed: str) -> None:
    home = Home(small_disk)
    place = local(home)
    trial = trial_of(home, EATS.format(deed))
    ref = place.submit(trial, Placement(), {})
    wait_until(lambda: nothing_left(str(directory_of(home, trial))) or _is_full(small_disk), "a full disk")
    wait_until(lambda: not processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial))), "the worker's end")
    end = finish(place, ref)
    assert _is_full(small_disk)
    assert end.state is TrialState.FAILED
    assert "No space left on device" in end.reason
    assert "exit code" not in end.reason


def test_what_a_full_disk_took_from_a_trial_that_ended_well_is_told(small_disk: Path) -> None:
    code = """
        try:
            with open("ballast", "wb", buffering=0) as file:
                while True: file.write(bytes(65536))
        except OSError:
            with open("ballast2", "wb", buffering=0) as file:
                while True:
                    try: file.write(b"x")
                    except OSError: break
        for k in range(10_000): report(k=k)
        model = bytes(100_000)
    """
    place = local(Home(small_disk))
    ref = place.submit(trial_of(Home(small_disk), code, returns=("model",)), Placement(), {})
    end = finish(place, ref)
    assert end.state is TrialState.SUCCEEDED
    assert "returns: 'model' was not saved: [Errno 28] No space left on device" in end.reason
    assert "Some reports were lost: No space left on device" in end.reason


def _is_full(disk: Path) -> bool:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize < 65536


def test_a_trial_that_cannot_start_on_a_full_disk_names_the_disk(small_disk: Path) -> None:
    home = Home(small_disk)
    trial = trial_of(home, "")
    fill(small_disk)
    disk = rf"the disk of {directory_of(home, trial)} is full \([\d.]+ k?B of 2\.1 MB free"
    with pytest.raises(BackendError, match=disk):
        local(home).submit(trial, Placement(), {})


@pytest.mark.parametrize("kind", ["missing", "no permission", "another machine's", "no Python"])
def test_an_interpreter_that_cannot_be_used_is_told_in_three_clauses(
    place: LocalBackend, home: Home, tmp_path: Path, kind: str
) -> None:
    python = tmp_path / "python"
    if kind == "no permission":
        python.write_text("#!/bin/sh\n")
    elif kind == "another machine's":
        python.write_bytes(b"\x7fELF" + b"\xff" * 100)
        python.chmod(0o755)
    elif kind == "no Python":
        shutil.copy("/bin/true", python)
    end = finish(place, place.submit(trial_of(home, "", python=str(python)), Placement(), {}))
    assert end.state is TrialState.FAILED
    assert str(python) in end.reason
    said = {
        "missing": "No such file", "no permission": "not executable", "another machine's": "another kind of machine",
        "no Python": "before the cell began",
    }  # fmt: skip
    assert said[kind] in end.reason
    assert "was expected" in end.reason
    assert "Submit again" in end.reason


@pytest.mark.parametrize(("depth", "length"), [(1, 300), (40, 200)])
def test_a_home_with_too_long_a_path_is_told_as_such(tmp_path: Path, depth: int, length: int) -> None:
    home = Home(tmp_path.joinpath(*["x" * length] * depth))
    trial = trial_of(Home(tmp_path), "")
    with pytest.raises(BackendError, match="too long"):
        local(home).submit(trial, Placement(), {})


def test_the_status_says_what_was_ended_also_when_it_is_asked_again(place: LocalBackend, home: Home) -> None:
    trial = trial_of(home, COUNTS)
    ref = place.submit(trial, Placement(), {})
    begun(place, ref)
    first, second = place.cancel(ref, 1.0), local(home).cancel(ref, 1.0)
    assert first.pids_ended
    assert second.pids_ended == first.pids_ended
    assert "ended before" in second.note
    assert json.loads((directory_of(home, trial) / wire.STATUS_FILE).read_text())["receipt"]["left"] == []
