"""Reading what jobs report and how they stand, when reads fail and files are hostile."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from itertools import pairwise

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.manager.jobs import metrics_stream as streams
from jupyter_autotrain.manager.jobs.metrics_stream import MetricsStream
from tests.matrices import long_besides

REF = JobRef("local", "e-1-1")
MOST = 4 << 20


class File:
    """A metrics file that is read in bounded pieces, some of which fail."""

    def __init__(self, data):
        self.data = data
        self.faults = []
        self.stream = MetricsStream(0, "")
        self.tick_s = 0.0

    def read(self, offset):
        fault = self.faults.pop(0) if self.faults else ""
        data = b"" if fault else self.data[offset : offset + MOST]
        return Chunk(Cursor(REF, "metrics", offset), data, fault)

    def take(self):
        self.tick_s += 1.0
        while True:
            frames = self.stream.take(self.read(self.stream.next_offset), 5.0, self.tick_s)
            if frames is not None:
                return frames

    def points(self):
        """All points until the stream is read out."""
        found = []
        while True:
            frames = self.take()
            found += frames.points
            if self.stream.is_read_out(frames, self.tick_s):
                return found


def line(step, width=0):
    values = {"a": step} | {f"metric_{k}": k for k in range(width)}
    return json.dumps(["m", step, 1.0, values]).encode() + b"\n"


@pytest.mark.parametrize("before", long_besides([0, MOST], [0, 1 << 20, MOST - 100, MOST]))
@pytest.mark.parametrize("width", long_besides([0, 200_000], [0, 60_000, 200_000]))
def test_a_report_of_any_width_is_kept_wherever_a_read_ends(before, width):
    head = json.dumps(["n", 1.0, "info", "x" * before]).encode()[: before - 1] + b"\n" if before else b""
    file = File(head + line(1, width) + line(2))
    found = file.points()
    assert len(found) == width + 2
    assert [step for name, step, _, _ in found if name == "a"] == [1, 2]


def test_a_wide_report_that_is_still_being_written_is_waited_for():
    whole = line(1, 100_000)
    file = File(whole[:-10])
    assert file.take().points == []
    file.data = whole
    assert len(file.points()) == 100_001


def test_an_endless_line_is_skipped_with_one_note_and_what_follows_is_kept(monkeypatch):
    monkeypatch.setattr(streams, "LONGEST_LINE_BYTES", 2 * MOST)
    file = File(line(1) + b"x" * (5 * MOST) + b"\n" + line(2))
    notes = []
    found = []
    for _ in range(10):
        frames = file.take()
        notes += frames.notes
        found += frames.points
    assert [step for _, step, _, _ in found] == [1, 2]
    assert len(notes) == 1
    assert "a metric line of more than" in notes[0][2]


def test_a_read_that_fails_for_a_while_loses_nothing():
    file = File(line(1) + line(2))
    file.faults = ["too many open files"] * 3
    assert [step for _, step, _, _ in file.points()] == [1, 2]
    assert file.stream.last_note(5.0) == []


def test_a_read_that_always_fails_ends_the_stream_with_a_note_and_not_before():
    file = File(line(1))
    file.faults = ["no permission"] * 1000
    frames = file.take()
    assert not file.stream.is_read_out(frames, 50.0)
    assert file.stream.is_read_out(frames, 70.0)
    assert "no permission" in file.stream.last_note(5.0)[0][2]


def test_a_job_that_cannot_be_looked_at_moves_nowhere_and_why_says_so(world):
    experiment = world.submit()
    world.step()
    poll = world.backend.poll
    world.backend.poll = lambda refs: [JobStatus(ref, TrialState.PREPARING, doubt="no descriptor left") for ref in refs]
    world.step(20)
    assert world.states(experiment) == ["RUNNING"]
    (reason,) = world.manager.runs[experiment].published.blocked.values()
    assert reason == "cannot be looked at just now: no descriptor left"
    world.backend.poll = poll
    world.backend.job(1).end()
    world.step(20)
    assert world.states(experiment) == ["SUCCEEDED"]


def test_a_job_that_cannot_be_looked_at_is_asked_ever_less_often(world):
    world.submit()
    world.step()
    asked = []

    def poll(refs):
        asked.append(world.now)
        return [JobStatus(ref, TrialState.PREPARING, doubt="no permission") for ref in refs]

    world.backend.poll = poll
    world.step(200)  # of 0.2 s
    pauses = [after - before for before, after in pairwise(asked)]
    assert pauses[-1] > 4 * pauses[0]
    assert pauses[-1] <= 2.3


def test_a_job_whose_files_cannot_be_taken_does_not_keep_another_from_ending(world):
    experiment = world.submit(trials=2, concurrency=2)
    world.step()
    read = world.backend.read

    def broken(cursors):
        chunks = read(cursors)
        bad = [chunk.cursor.ref.job_id.endswith("-1-1") for chunk in chunks]
        return [replace(chunk, data=None) if is_bad else chunk for chunk, is_bad in zip(chunks, bad, strict=True)]

    world.backend.read = broken
    for number in (1, 2):
        world.backend.job(number).end()
    world.step()
    assert world.states(experiment) == ["RUNNING", "SUCCEEDED"]
    world.backend.read = read
    world.step(20)
    assert world.states(experiment) == ["SUCCEEDED", "SUCCEEDED"]


def counted(world):
    """Count what each read of the backend asks for."""
    read = world.backend.read
    asked = []

    def count(cursors):
        asked.append([(cursor.ref.job_id, cursor.stream) for cursor in cursors])
        return read(cursors)

    world.backend.read = count
    return asked


def test_all_streams_of_all_jobs_come_in_one_read_and_so_do_their_rests(world):
    world.backend.capabilities = replace(world.backend.capabilities, shares_home=False)
    world.backend.inventory = Inventory((Node("here", 40.0, 8_000_000_000),))
    experiment = world.submit(trials=5, concurrency=5)
    world.step()
    asked = counted(world)
    for number in range(1, 6):
        world.backend.job(number).report(loss=number)  # longer than one read gives
        world.backend.job(number).stdout = b"x" * 150
        world.backend.job(number).end()
    world.step()
    streams_of_one = ["metrics", "stdout", "stderr", "usage"]
    whole = [(f"{experiment}-{number}-1", stream) for number in range(1, 6) for stream in streams_of_one]
    assert asked == [whole] * len(asked)
    assert len(asked) == 4  # of 64 bytes each: three hold all of the logs, the last one nothing
    assert world.states(experiment) == ["SUCCEEDED"] * 5
    assert [(world.home.trial(experiment, n, 1) / "stdout").read_bytes() for n in range(1, 6)] == [b"x" * 150] * 5
    kept = [(world.home.trial(experiment, n, 1) / "metrics").read_bytes() for n in range(1, 6)]
    assert kept == [world.backend.job(n).metrics for n in range(1, 6)]


def test_a_backend_says_how_often_it_is_polled(world):
    world.backend.poll_interval = PollInterval(least_s=3.0, most_s=60.0, age_share=0.5)
    world.submit()
    world.step()
    polled = []
    poll = world.backend.poll

    def note(refs):
        polled.append(world.now)
        return poll(refs)

    world.backend.poll = note
    world.step(2000)  # of 0.2 s
    pauses = [after - before for before, after in pairwise(polled)]
    assert pauses[0] >= 3.0
    assert 59.0 <= pauses[-1] <= 60.5
    assert len(polled) < 15


def lacking(call, times=3):
    """Return the call, which at first finds no descriptor free."""
    faults = [OSError(errno.EMFILE, "Too many open files")] * times

    def try_call(*args):
        if faults:
            raise faults.pop()
        return call(*args)

    return try_call


def test_a_backend_that_cannot_be_made_or_asked_for_a_moment_ends_no_experiment(world):
    world.create_backend = lacking(lambda: world.backend)
    world.backend.probe, world.backend.discover = lacking(world.backend.probe), lacking(world.backend.discover)
    experiment = world.submit()
    world.step()
    assert world.states(experiment) == ["RUNNING"]


def test_what_a_machine_lacks_for_long_is_the_reason_in_the_end(world):
    world.create_backend = lacking(lambda: world.backend, times=1000)
    experiment = world.submit()
    world.step()
    assert world.states(experiment) == ["FAILED"]
    assert "Too many open files" in world.trials(experiment)[0].reason


def test_a_stream_that_was_not_read_from_its_cursor_on_costs_only_its_own_trial_another_reading(world):
    experiment = world.submit(trials=2, concurrency=2, objective=Objective("acc"))
    world.step()
    for number in (1, 2):
        world.backend.job(number).report(step=1, acc=0.1)
    world.step()
    world.store.forget_reports(experiment, 1, 1)  # as when a store of before is put back
    for number in (1, 2):
        world.backend.job(number).report(step=2, acc=0.2)
        world.backend.job(number).end()
    world.step(8)
    assert world.states(experiment) == ["SUCCEEDED", "SUCCEEDED"]
    found = sorted((point.number, point.step) for point in world.store.points(experiment))
    assert found == [(1, 1), (1, 2), (2, 1), (2, 2)]


def lines_of(step, times):
    return b"".join(json.dumps(["m", step + n, 1.0, {"loss": 0.5}]).encode() + b"\n" for n in range(times))


@pytest.fixture
def two(world):
    """Two trials that run, of which the first has reported much at once and the second reports with each read."""
    world.submit(trials=2, concurrency=2)
    world.step()
    job = world.backend.job
    job(1).metrics += lines_of(0, 45_000)

    def read(cursors):
        job(2).metrics += lines_of(len(job(2).metrics), 1)
        return [
            Chunk(c, job(int(c.ref.job_id.split("-")[1])).metrics[c.offset : c.offset + (4 << 20)]) for c in cursors
        ]

    world.backend.read = read
    (backend,) = world.manager._backend_pool._backends.values()
    return backend.watcher


def test_a_trial_that_reports_much_at_once_is_taken_in_shares_between_which_another_one_has_its_turn(world, two):
    world.now += 1
    two.poll_due()
    events = world.event_queue.drain()
    shares = [len(event.frames.points) for event in events if event.job_id == "id0-1-1"]
    assert sum(shares) == 45_000
    assert max(shares) < 3_000
    turns = [event.job_id for event in events]
    assert turns[: 2 * len(shares)] == ["id0-1-1", "id0-2-1"] * len(shares)


def test_a_round_ends_after_a_while_and_what_is_left_is_due_at_once(world, two):
    read = world.backend.read

    def slow_read(cursors):
        world.now += 0.15
        return read(cursors)

    world.backend.read = slow_read
    world.now += 1
    assert two.poll_due() == 0.0
    assert len(world.event_queue.drain()) == 2 * 2
    world.backend.read = read
    world.now += 1
    two.poll_due()
    assert two.poll_due() > 0.0
