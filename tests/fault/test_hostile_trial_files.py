"""Whatever a trial puts in place of its files, neither the manager nor another trial is harmed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep, time
from types import SimpleNamespace

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import Cursor
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.manager.context import Clocks, Threads
from jupyter_autotrain.manager.jobs.events import Event, JobUpdate
from jupyter_autotrain.manager.jobs.watcher import JobWatcher
from jupyter_autotrain.testing import trial_of, wait_until, write_bundle
from tests.fault.local_trials import directory_of, finish, supervisor_gone, text

pytestmark = pytest.mark.fault


HOSTILE = {
    "a pipe": "os.unlink(F); os.mkfifo(F)",
    "a link to /dev/zero": "os.unlink(F); os.symlink('/dev/zero', F)",
    "a folder": "os.unlink(F); os.mkdir(F)",
    "brackets": "open(F, 'a').write('[' * 100_000 + '\\n')",
    "an endless line": "open(F, 'a').write('x' * (20 << 20) + '\\n')",
    "a hole of a gigabyte": "os.truncate(F, 1 << 30)",
    "a lone surrogate": r"""open(F, 'a').write('["m", 1, 1.0, {"\\ud800": 1.0}]\n["n", 1.0, "info", "\\ud800"]\n')""",
    "a step nobody can hold": """open(F, 'a').write('["m", 1' + '0' * 40 + ', 1.0, {"a": 1}]\\n')""",
    "a time nobody can hold": """open(F, 'a').write('["m", 1, 1e999, {"a": 1}]\\n')""",
    "bytes": "open(F, 'ab').write(bytes(range(256)) * 100)",
}


class Watched:
    """A job watcher with the events that it emits."""

    def __init__(self, backend: LocalBackend) -> None:
        self.events: list[Event] = []
        self._pool = ThreadPoolExecutor(2)
        context = SimpleNamespace(clocks=Clocks(time, monotonic, sleep))
        self.watcher = JobWatcher(
            backend, "local", self.events.append, Threads(lambda: self._pool, self._pool), context
        )  # type: ignore[arg-type] # all it asks for here

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
        wait_until(lambda: (self.watcher.poll_due(), condition())[1], what)


@pytest.mark.parametrize("deed", HOSTILE.values(), ids=HOSTILE)
def test_hostile_metrics_of_one_trial_stop_neither_the_manager_nor_another_trial(
    backend: LocalBackend, home: Home, deed: str
) -> None:
    write_bundle(home.bundle("bad"), f"import os\nF = '../metrics'\nreport(a=1)\n{deed}\nreport(a=2)")
    bad, good = (trial_of(home, "report(a=1)\nprint('ran')", experiment_id=e) for e in ("bad", "good"))
    watched = Watched(backend)
    for trial in (bad, good):
        watched.watcher.watch(trial, backend.submit(trial, Placement(), {}), 0)
    watched.until(lambda: watched.end(good.job_id) is not None, "the end of the good trial")
    watched.until(lambda: watched.end(bad.job_id) is not None, "the end of the bad trial")
    assert (watched.end(good.job_id), watched.points(good.job_id)) == (TrialState.SUCCEEDED, 1)
    assert watched.end(bad.job_id) is TrialState.SUCCEEDED
    assert watched.notes(good.job_id) == []
    assert watched.notes(bad.job_id)


REPLACES = """
import os, shutil
F = "../{name}"
replaced = False
while not replaced:
    shutil.rmtree(F) if os.path.isdir(F) else os.unlink(F)
    try:
        {deed}
        replaced = True
    except FileExistsError:
        pass  # the supervisor wrote its status in between
print("begun")
"""


@pytest.mark.parametrize("name", ["status.json", "stdout", "stderr", "lock", "trial.json", "checkpoints", "outputs"])
@pytest.mark.parametrize("deed", ["os.mkfifo(F)", "os.symlink('/dev/zero', F)", "os.symlink('..', F)"])
def test_whatever_lies_in_the_place_of_a_trials_file_it_ends_and_nobody_waits(
    backend: LocalBackend, home: Home, name: str, deed: str
) -> None:
    trial = trial_of(home, REPLACES.format(name=name, deed=deed))
    ref = backend.submit(trial, Placement(), {})
    end = finish(backend, ref)
    assert end.state is TrialState.SUCCEEDED
    for stream in wire.STREAMS:
        backend.read([Cursor(ref, stream, 0)])
    supervisor_gone(str(directory_of(home, trial)))


def test_a_hostile_file_among_the_checkpoints_does_not_keep_a_second_attempt_from_going_on(
    backend: LocalBackend, home: Home
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
    finish(backend, backend.submit(first, Placement(), {}))
    ref = backend.submit(trial_of(home, code, attempt=2, resume_attempt=1), Placement(), {})
    assert finish(backend, ref).state is TrialState.SUCCEEDED
    assert text(backend, ref) == "from 10 ['kept', 'step-000000000010.pkl']\n"
