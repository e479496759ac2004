"""A process that runs trials one after another: killed, told to end, left alone, and given trials that leave things."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain.agent.pool.waiting import TAKEN, WaitingTrials, give
from jupyter_autotrain.testing import wait_until

pytestmark = pytest.mark.fault
PILOT = """
import os, sys, time
from jupyter_autotrain.agent.pool.pilot import Pilot
from jupyter_autotrain.agent.pool.waiting import WaitingTrials

def run(name, entry, how):
    if not how:
        exec(entry["code"], {"name": name})
    else:
        with open("lost", "a") as file:
            file.write(f"{name} {how}\\n")

pool, folder, idle_s, left_s = sys.argv[1:]
os.chdir(folder)
waiting = WaitingTrials(pool)
pilot = Pilot(waiting, folder, run, idle_s=float(idle_s), end_s=time.time() + float(left_s))
open("begun", "w").close()
sys.exit(0 if pilot.run() else 143)
"""
NOTE = "open('ran.txt', 'a').write(f'{name}\\n')\n"
WAIT = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'running')\ntime.sleep(1000)"
DETACH = """
import os, time
reader, writer = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, f"{os.getpid()}\\n".encode())
            time.sleep(1000)
        os._exit(0)
left = ""
while left.count("\\n") < 3:
    left += os.read(reader, 100).decode()
open("left", "w").write(left)
"""
LOOK = """
import os
living = [pid for pid in open("left").read().split() if os.path.exists(f"/proc/{pid}")]
open("found", "w").write(repr(living))
"""
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a pilot in a folder; alone there, it has its own trials."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(folder: Path = tmp_path, idle_s: float = 0.3, left_s: float = 1e6) -> subprocess.Popen[bytes]:
        WaitingTrials(tmp_path).open()
        folder.mkdir(exist_ok=True)
        (folder / "begun").unlink(missing_ok=True)
        pilot = subprocess.Popen([sys.executable, "-c", PILOT, tmp_path, folder, str(idle_s), str(left_s)])
        started.append(pilot)
        return pilot

    yield begin
    for pilot in started:
        pilot.kill()
        pilot.wait()


def entry(code: str, **more: object) -> bytes:
    return json.dumps({"code": code, **more}).encode()


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_killed_pilot_takes_its_trial_along_and_leaves_what_it_had_taken(tmp_path: Path, start: Start) -> None:
    WaitingTrials(tmp_path).open()
    for name in ("a", "b"):
        give(str(tmp_path), name, entry(WAIT))
    pilot = start()
    running = psutil.Process(int(wait_until(lambda: text(tmp_path / "running"), "the trial")))
    pilot.kill()
    pilot.wait()
    wait_until(lambda: not running.is_running() or running.status() == psutil.STATUS_ZOMBIE, "the end of the trial")
    assert (tmp_path / f"{TAKEN}a").exists()
    assert WaitingTrials(tmp_path).names() == ["b"]
    assert text(tmp_path / "lost") == ""


def test_a_pilot_that_is_told_to_end_tells_its_trial_and_leaves_both_it_and_those_that_wait(
    tmp_path: Path, start: Start
) -> None:
    WaitingTrials(tmp_path).open()
    told = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (open('told', 'w').close(), sys.exit(0)))\n"
    for name in ("a", "b"):
        give(str(tmp_path), name, entry(told + WAIT))
    pilot = start()
    wait_until((tmp_path / "running").exists, "the trial")
    pilot.terminate()
    assert pilot.wait(240) == 143
    assert (tmp_path / "told").exists()
    assert (tmp_path / f"{TAKEN}a").exists()
    assert WaitingTrials(tmp_path).names() == ["b"]


def test_a_pilot_ends_when_it_is_told_just_as_it_begins_a_trial(tmp_path: Path, start: Start) -> None:
    waiting = WaitingTrials(tmp_path)
    pilots = [start(tmp_path / f"pilot-{number}", idle_s=1000) for number in range(8)]
    wait_until(lambda: len(list(tmp_path.glob("pilot-*/begun"))) == 8, "the pilots")
    for number in range(8):
        waiting.put(f"{number}", entry(WAIT))
        while not list(tmp_path.glob(f"pilot-*/{TAKEN}{number}")):
            pass
        (taken,) = tmp_path.glob(f"pilot-*/{TAKEN}{number}")
        pilot = pilots[int(taken.parent.name[-1])]
        pilot.terminate()
        assert pilot.wait(240) == 143


def test_a_pilot_without_a_trial_ends_and_takes_none_any_more(tmp_path: Path, start: Start) -> None:
    assert start(idle_s=0.0).wait(240) == 0
    with pytest.raises(OSError, match="ends"):
        give(str(tmp_path), "a", entry(NOTE))


def test_no_trial_is_lost_that_comes_while_pilots_end(tmp_path: Path, start: Start) -> None:
    """Each pilot ends when it sees no trial; trials come all the time."""
    pilots = [start(idle_s=0.0)]
    for number in range(100):
        name = f"{number:03}"
        while True:
            try:
                give(str(tmp_path), name, entry(NOTE))
                break
            except OSError:
                assert pilots[-1].wait(240) == 0
                pilots.append(start(idle_s=0.0))
    assert pilots[-1].wait(240) == 0
    assert text(tmp_path / "ran.txt").split() == [f"{number:03}" for number in range(100)]
    assert WaitingTrials(tmp_path).close()


def test_what_a_trial_detaches_ends_before_the_next_trial_begins(tmp_path: Path, start: Start) -> None:
    WaitingTrials(tmp_path).open()
    give(str(tmp_path), "a", entry(DETACH))
    give(str(tmp_path), "b", entry(LOOK))
    assert start().wait(240) == 0
    assert len(text(tmp_path / "left").split()) == 3
    assert text(tmp_path / "found") == "[]"


def test_a_trial_that_is_given_twice_runs_once(tmp_path: Path, start: Start) -> None:
    pilot = start(idle_s=1.0)
    for _ in range(2):
        give(str(tmp_path), "a", entry(NOTE + WAIT))
    running = wait_until(lambda: text(tmp_path / "running"), "the trial")
    give(str(tmp_path), "a", entry(NOTE + WAIT))
    os.kill(int(running), signal.SIGKILL)
    wait_until(lambda: not (tmp_path / f"{TAKEN}a").exists(), "its end")
    give(str(tmp_path), "a", entry(NOTE + WAIT))
    assert pilot.wait(240) == 0
    assert text(tmp_path / "ran.txt") == "a\n"


def test_the_loss_of_a_trial_is_told_and_the_next_one_runs(tmp_path: Path, start: Start) -> None:
    WaitingTrials(tmp_path).open()
    give(str(tmp_path), "a", entry("import os\nos.kill(os.getpid(), 9)"))
    give(str(tmp_path), "b", entry("import os\nos.chdir('/')\nos.environ['HOME'] = '/nowhere'\nraise SystemExit(3)"))
    give(str(tmp_path), "c", entry(NOTE))
    assert start().wait(240) == 0
    assert text(tmp_path / "lost") == "a signal 9\nb exit code 3\n"
    assert text(tmp_path / "ran.txt") == "c\n"


def test_pilots_that_share_their_trials_run_each_once(tmp_path: Path, start: Start) -> None:
    WaitingTrials(tmp_path).open()
    names = {f"{number:03}" for number in range(60)}
    for name in sorted(names):
        WaitingTrials(tmp_path).put(name, entry(NOTE))
    pilots = [start(tmp_path / f"pilot-{number}") for number in range(3)]
    assert [pilot.wait(240) for pilot in pilots] == [0, 0, 0]
    ran = "".join(text(tmp_path / f"pilot-{number}" / "ran.txt") for number in range(3)).split()
    assert (len(ran), set(ran)) == (60, names)


def test_a_pilot_without_the_time_for_those_that_wait_leaves_them_to_others(tmp_path: Path, start: Start) -> None:
    waiting = WaitingTrials(tmp_path)
    waiting.open()
    for name, timeout_s in (("a", 5000.0), ("b", 5000.0), ("c", 10.0)):
        waiting.put(name, entry(NOTE, timeout_s=timeout_s))
    assert start(left_s=1000.0).wait(240) == 0
    assert text(tmp_path / "ran.txt") == "a\nc\n"  # the first one is taken in any case
    assert waiting.names() == ["b"]
