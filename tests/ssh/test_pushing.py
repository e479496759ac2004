"""States, metrics and logs come unasked: bounded, in order, without a gap, and nothing is asked meanwhile."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.service import watching
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.ssh.agent_connection import AgentConnection
from jupyter_autotrain.backends.ssh.host_survey import SideBySide
from jupyter_autotrain.backends.ssh.pushed_jobs import PushedJobs
from jupyter_autotrain.backends.ssh.trial_starter import UploadProgress
from jupyter_autotrain.core.backend import Cursor
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_trials import COUNTS, LabBackends, end, read_on, start, status


def pushed(name: str, offset: int, data: bytes, **more: object) -> dict[str, object]:
    return {"push": name, "streams": {"stdout": [offset, base64.b64encode(data).decode(), "", False]}, **more}


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what agents are asked from now on, but for what only keeps them alive."""
    asked: list[str] = []
    tell = AgentConnection.tell

    def noted(self: AgentConnection, message: dict[str, object]) -> object:
        if message["do"] != "ping":
            asked.append(str(message["do"]))
        return tell(self, message)

    monkeypatch.setattr(AgentConnection, "tell", noted)
    return asked


def test_a_running_trial_is_followed_without_a_question(make: LabBackends, home: Home, questions: list[str]) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    seen = [b""]

    def has_lines() -> bool:
        seen[0] = read_on(backend, ref, wire.METRICS, seen[0])
        return seen[0].count(b"\n") > 20 and status(backend, ref).state is TrialState.RUNNING

    wait_until(has_lines, "twenty metrics")
    assert questions == ["make_room", "start"]
    backend.cancel(ref, 1.0)
    assert status(backend, ref).state is TrialState.CANCELLED
    assert questions == ["make_room", "start", "cancel"]


def test_whoever_subscribes_is_told_of_each_change(make: LabBackends, home: Home) -> None:
    backend = make(home)
    told: list[str] = []
    backend.subscribe(told.extend, lambda _job_id, _what: None)
    ref = start(backend, home, "report(loss=1)")
    wait_until(lambda: told, "the first news")
    end(backend, ref)
    assert set(told) == {ref.job_id}


def test_a_stream_that_is_longer_than_the_window_comes_whole(make: LabBackends, home: Home) -> None:
    lines = 120_000
    backend = make(home)
    ref = start(backend, home, f"for n in range({lines}): print('line', n)\nimport time\nwhile True: time.sleep(1)")
    seen = [b""]

    def is_whole() -> bool:
        seen[0] = read_on(backend, ref, wire.STDOUT, seen[0])
        return seen[0].count(b"\n") == lines

    wait_until(is_whole, "all lines")
    assert len(seen[0]) > 4 * watching.WINDOW_BYTES
    assert seen[0] == b"".join(b"line %d\n" % number for number in range(lines))
    backend.cancel(ref, 0.0)


def test_a_fresh_instance_goes_on_from_its_cursor(make: LabBackends, home: Home) -> None:
    backend = make(home)
    ref = start(backend, home, COUNTS)
    wait_until(lambda: len(read_on(backend, ref, wire.METRICS, b"")) > 100, "some metrics")
    known = read_on(backend, ref, wire.METRICS, b"")
    backend.close()
    fresh = make(home)

    def has_more() -> bool:
        again = fresh.read([Cursor(ref, wire.METRICS, 50)])[0].data
        return again.startswith(known[50:]) and len(again) > len(known)

    wait_until(has_more, "later metrics")
    fresh.cancel(ref, 0.0)


def test_bytes_that_come_twice_are_kept_once() -> None:
    jobs = PushedJobs()
    jobs.expect("j", {"stdout": 0})
    jobs.take(pushed("j", 0, b"abc"))
    jobs.take(pushed("j", 1, b"bcde"))
    piece = jobs.read("j", "stdout", 0)
    assert piece is not None
    assert piece.data == b"abcde"


def test_a_gap_is_never_read_over() -> None:
    jobs = PushedJobs()
    jobs.expect("j", {"stdout": 0})
    jobs.take(pushed("j", 0, b"abc"))
    jobs.take(pushed("j", 9, b"xyz"))
    assert jobs.read("j", "stdout", 0) is None


def test_a_stream_of_an_ended_job_is_asked_for_until_it_is_whole() -> None:
    jobs = PushedJobs()
    jobs.expect("j", {"stdout": 0})
    jobs.take(pushed("j", 0, b"abc", status={"state": "SUCCEEDED"}, sizes={"stdout": 5}))
    assert jobs.read("j", "stdout", 0) is None
    jobs.expect("j", {"stdout": 0})
    jobs.take(pushed("j", 0, b"abcde", sizes={"stdout": 5}))
    piece = jobs.read("j", "stdout", 0)
    assert piece is not None
    assert piece.data == b"abcde"


def test_what_is_pushed_of_a_job_that_is_not_subscribed_is_dropped() -> None:
    jobs = PushedJobs()
    assert jobs.take(pushed("j", 0, b"abc")) == ""
    assert jobs.names() == []


def test_a_host_that_is_late_is_not_waited_for_again() -> None:
    side_by_side = SideBySide()
    answers = threading.Event()
    slow: dict[str, Callable[[], object]] = {"slow": answers.wait}
    assert side_by_side.call(slow, 0.05) == {}
    assert side_by_side.call({**slow, "quick": lambda: 1}, None) == {"quick": 1}
    answers.set()
    wait_until(lambda: "slow" in side_by_side.call(slow, 0.05), "the slow host")


def test_an_upload_is_told_with_size_rate_and_time_left_and_a_quick_one_is_not() -> None:
    told: list[str] = []
    now_s = [0.0]
    progress = UploadProgress("gpu1", told.append, lambda: now_s[0])
    progress(0, 100_000_000)
    now_s[0] = 0.4
    progress(10_000_000, 100_000_000)
    assert told == []
    now_s[0] = 1.0
    progress(25_000_000, 100_000_000)
    assert len(told) == 1
    assert "to gpu1: 25%" in told[0]
    assert "3 s left" in told[0]


def test_a_slow_upload_reaches_whoever_subscribes_until_it_is_over(make: LabBackends, home: Home) -> None:
    backend = make(home)
    told: list[tuple[str, str]] = []
    backend.subscribe(lambda _ids: None, lambda job_id, what: told.append((job_id, what)))
    ref = start(backend, home, "")
    end(backend, ref)
    assert told[-1] == (ref.job_id, "")
