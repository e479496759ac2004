"""A backend that pushes has its jobs polled as soon as there is something new, however rarely it is polled else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep, time
from types import SimpleNamespace

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.manager.context import Clocks, Threads
from jupyter_autotrain.manager.jobs.events import Event, SubmitProgress
from jupyter_autotrain.manager.jobs.watcher import JobWatcher
from jupyter_autotrain.testing import trial_of, wait_until


class PushingBackend:
    name = "lab"
    capabilities = Capabilities(pushes=True, shares_home=True)
    poll_interval = PollInterval(least_s=600.0, most_s=600.0)

    def __init__(self) -> None:
        self.polled: list[list[str]] = []
        self.tell: Callable[[Collection[str]], None] = lambda _: None
        self.tell_progress: Callable[[str, str], None] = lambda _job_id, _what: None

    def subscribe(self, on_news: Callable[[Collection[str]], None], on_progress: Callable[[str, str], None]) -> None:
        self.tell = on_news
        self.tell_progress = on_progress

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        self.polled.append([ref.job_id for ref in refs])
        return [JobStatus(ref, TrialState.RUNNING) for ref in refs]

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        return [Chunk(cursor, b"") for cursor in cursors]


@pytest.fixture
def backend() -> PushingBackend:
    return PushingBackend()


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def watcher(backend: PushingBackend, events: list[Event], tmp_path: Path) -> Iterator[JobWatcher]:
    context = SimpleNamespace(clocks=Clocks(time, monotonic, sleep))
    with ThreadPoolExecutor(1) as pool:
        made = JobWatcher(backend, "lab", events.append, Threads(lambda: pool, pool), context)  # type: ignore[arg-type]  # all it asks for here
        made.start()
        for number in (1, 2):
            trial = trial_of(Home(tmp_path), "", number=number)
            made.watch(trial, JobRef("lab", trial.job_id), 0)
        wait_until(lambda: {job for jobs in backend.polled for job in jobs} == {"e1-1-1", "e1-2-1"}, "the first polls")
        yield made


@pytest.mark.usefixtures("watcher")
def test_a_job_with_news_is_polled_at_once_and_alone(backend: PushingBackend) -> None:
    backend.polled.clear()
    backend.tell(["e1-2-1"])
    wait_until(lambda: backend.polled, "the poll")
    assert backend.polled == [["e1-2-1"]]


@pytest.mark.usefixtures("watcher")
def test_news_of_an_unknown_job_changes_nothing(backend: PushingBackend) -> None:
    backend.polled.clear()
    backend.tell(["e9-1-1"])
    backend.tell(["e1-2-1"])  # looked at after the other
    wait_until(lambda: backend.polled, "the poll")
    assert backend.polled == [["e1-2-1"]]


@pytest.mark.usefixtures("watcher")
def test_what_a_submit_is_doing_becomes_an_event(backend: PushingBackend, events: list[Event]) -> None:
    backend.tell_progress("e1-1-1", "sends 120 MB to gpu1: 43 %")
    assert [event for event in events if isinstance(event, SubmitProgress)] == [
        SubmitProgress("e1-1-1", "sends 120 MB to gpu1: 43 %")
    ]
