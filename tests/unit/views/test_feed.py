"""Tests of what views receive: everything once, in order, and nothing is missed."""

import math
import queue
import threading
import time

import numpy as np
import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.feed import Feed, snapshot
from jupyter_autotrain.views.sender import FeedSender
from jupyter_autotrain.views.summary import eta_s


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        opened.add_experiment("e1", ExperimentSpec("digits", Bundle(), objective=Objective("acc"), trials=4), 100.0)
        yield opened


def begin(store, number, now_s=100.0):
    store.add_trial("e1", number, {"lr": 0.1}, now_s)
    store.change_state("e1", number, TrialState.PREPARING, now_s)
    store.change_state("e1", number, TrialState.RUNNING, now_s)


def report(store, number, steps, cursor, attempt=1):
    points = [("acc", step, 1.0, step / 10) for step in steps]
    store.ingest([Ingest("e1", number, attempt, "metrics", cursor, points=points)])


def rows(frame):
    steps = np.frombuffer(frame.steps)
    taken = 0
    found = {}
    for metric, number, attempt, first, count in frame.content["series"]:
        found[metric, number, attempt] = (first, list(steps[taken : taken + count]))
        taken += count
    return found


def test_deltas_tell_each_row_once_with_its_place_in_the_series(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    report(store, 1, [0, 1], 10)
    assert rows(feed.delta(101.0)) == {("acc", 1, 1): (0, [0.0, 1.0])}
    report(store, 1, [2], 20)
    report(store, 1, [3], 30)
    assert rows(feed.delta(102.0)) == {("acc", 1, 1): (2, [2.0, 3.0])}
    assert rows(feed.delta(103.0)) == {}


def test_a_snapshot_equals_the_sum_of_all_deltas(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    begin(store, 2)
    collected = {}
    for step in range(6):
        report(store, 1 + step % 2, [step], 10 * (step + 1))
        for key, (first, steps) in rows(feed.delta(101.0)).items():
            assert len(collected.setdefault(key, [])) == first
            collected[key] += steps
    whole = snapshot(store, "e1", 101.0, feed.seq)
    assert {key: steps for key, (_, steps) in rows(whole).items()} == collected
    assert whole.content["seq"] == feed.seq == 6


def test_only_trials_that_changed_are_told_again(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    begin(store, 2)
    assert [trial["number"] for trial in feed.delta(101.0).content["trials"]] == [1, 2]
    store.change_state("e1", 2, TrialState.FAILED, 102.0, reason="out of memory")
    [trial] = feed.delta(103.0).content["trials"]
    assert (trial["number"], trial["state"], trial["reason"]) == (2, "FAILED", "out of memory")


def test_a_retried_trial_begins_a_series_of_its_own(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    report(store, 1, [0, 1, 2], 10)
    store.change_state("e1", 1, TrialState.FAILED, 101.0)
    feed.delta(101.0)
    store.change_state("e1", 1, TrialState.WAITING, 102.0)
    report(store, 1, [0], 10, attempt=2)
    assert rows(feed.delta(103.0)) == {("acc", 1, 2): (0, [0.0])}


def test_numbers_that_json_does_not_know_travel_as_text_and_nan_values_as_nan(store):
    store.add_trial("e1", 1, {"a": math.inf, "b": {"c": math.nan}}, 100.0)
    store.ingest([Ingest("e1", 1, 1, "metrics", 9, points=[("acc", 0, 1.0, None)])])
    frame = snapshot(store, "e1", 101.0)
    assert frame.content["trials"][0]["params"] == {"a": "inf", "b": {"c": "nan"}}
    assert math.isnan(np.frombuffer(frame.values)[0])


def test_after_a_retry_the_time_left_follows_from_what_happened_since(store):
    begin(store, 1)
    store.change_state("e1", 1, TrialState.FAILED, 110.0)
    store.close_experiment("e1", 110.0)
    store.begin_retry("e1", 90_000.0)
    store.change_state("e1", 1, TrialState.WAITING, 90_000.0)
    store.change_state("e1", 1, TrialState.PREPARING, 90_000.0)
    store.change_state("e1", 1, TrialState.RUNNING, 90_000.0)
    store.change_state("e1", 1, TrialState.SUCCEEDED, 90_010.0)
    begin(store, 2, 90_010.0)
    assert eta_s(store.experiment("e1"), store.trials("e1"), 90_010.0) == pytest.approx(30.0)
    assert snapshot(store, "e1", 90_010.0).content["experiment"]["begun_s"] == 90_000.0


def test_the_time_left_follows_from_the_trials_that_ended(store):
    begin(store, 1)
    assert eta_s(store.experiment("e1"), store.trial_times("e1"), 105.0) is None
    store.change_state("e1", 1, TrialState.SUCCEEDED, 110.0)
    assert eta_s(store.experiment("e1"), store.trial_times("e1"), 110.0) == pytest.approx(30.0)
    begin(store, 2, 110.0)
    assert eta_s(store.experiment("e1"), store.trial_times("e1"), 115.0) == pytest.approx(25.0)


class Inbox:
    def __init__(self):
        self.messages = []
        self._arrived = threading.Condition()

    def __call__(self, content, buffers):
        with self._arrived:
            self.messages.append((content, buffers))
            self._arrived.notify_all()

    def wait(self, accept, timeout_s=60.0):
        with self._arrived:
            assert self._arrived.wait_for(lambda: any(accept(c) for c, _ in self.messages), timeout_s)


def test_a_sender_sends_the_last_row_before_it_ends_with_the_experiment(store):
    begin(store, 1)
    inbox = Inbox()
    ended = threading.Event()
    sender = FeedSender(store, "e1", inbox, ended.set)
    sender.start()
    report(store, 1, [0, 1], 10)
    store.change_state("e1", 1, TrialState.SUCCEEDED, 105.0)
    store.close_experiment("e1", 106.0)
    assert ended.wait(60.0)
    assert inbox.messages[-1][0]["experiment"]["state"] == "SUCCEEDED"
    assert sum(len(buffers[0]) for _, buffers in inbox.messages) == 16
    assert [content["seq"] for content, _ in inbox.messages] == list(range(2, sender.seq + 1))
    sender.stop()
    assert wait_until(lambda: not sender.alive)


def begin_again(store):
    store.begin_retry("e1", 200.0)
    for state in (TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING):
        store.change_state("e1", 1, state, 200.0)


@pytest.mark.parametrize("is_ended", [False, True])
def test_an_experiment_that_is_begun_again_is_followed_to_its_next_end(store, is_ended):
    begin(store, 1)
    if is_ended:
        end(store)
    inbox = Inbox()
    ended = queue.SimpleQueue()
    sender = FeedSender(store, "e1", inbox, lambda: ended.put(True))
    sender.start(is_ended=is_ended)
    if not is_ended:
        end(store)
        ended.get(timeout=60)
    begin_again(store)
    inbox.wait(lambda content: any(trial["attempt"] == 2 for trial in content["trials"]))
    end(store)
    ended.get(timeout=60)
    assert inbox.messages[-1][0]["experiment"]["state"] == "CANCELLED"
    assert ended.empty()
    sender.stop()
    assert wait_until(lambda: not sender.alive)


def end(store):
    store.change_state("e1", 1, TrialState.CANCELLED, 105.0)
    store.close_experiment("e1", 106.0)


def test_a_sender_flushes_at_most_ten_times_a_second(store):
    begin(store, 1)
    inbox = Inbox()
    sender = FeedSender(store, "e1", inbox, lambda: None)
    begun_s = time.monotonic()
    sender.start()
    step = 0
    while len(inbox.messages) < 4 and time.monotonic() < begun_s + 60:
        report(store, 1, [step], step + 1)
        step += 1
    assert len(inbox.messages) >= 4
    assert time.monotonic() - begun_s >= 0.3
    sender.stop()
    assert wait_until(lambda: not sender.alive)


def test_a_stopped_sender_ends_without_calling_the_experiment_ended(store):
    ended = threading.Event()
    sender = FeedSender(store, "e1", Inbox(), ended.set)
    sender.start()
    sender.stop()
    assert wait_until(lambda: not sender.alive)
    assert not ended.is_set()


def test_a_followed_log_is_sent_at_once_and_when_it_grows(store, tmp_path):
    inbox = Inbox()
    path = tmp_path / "stdout"
    path.write_text("one\n")
    sender = FeedSender(store, "e1", inbox, lambda: None)
    sender.start()
    sender.follow_log({"trial": 1, "stream": "stdout"}, path)
    told = {"trial": 1, "stream": "stdout", "kind": "log", "text": "one\n", "left_out": "", "bytes": 4}
    assert told in [content for content, _ in inbox.messages]
    path.write_text("one\ntwo\n")
    inbox.wait(lambda content: content.get("text") == "one\ntwo\n")
    sender.stop()
    assert wait_until(lambda: not sender.alive)


def wait_until(condition, timeout_s=60.0):
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return condition()


def test_warnings_come_whole_whenever_they_change_and_only_then(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    assert "warnings" not in feed.delta(101.0).content
    for cursor, times in ((10, 1), (20, 10)):
        store.ingest([Ingest("e1", 1, 1, "metrics", cursor, notes=[(1.0, "warning", "acc is 'x'", times)])])
        told = feed.delta(102.0).content["warnings"]
    assert told == ["10 warnings in trial 1; first: acc is 'x'."]
    assert "warnings" not in feed.delta(103.0).content
    assert snapshot(store, "e1", 104.0).content["warnings"] == told


def test_pictures_are_listed_whole_whenever_one_comes(store):
    feed = Feed(store, "e1")
    begin(store, 1)
    assert "pictures" not in feed.delta(101.0).content
    for cursor, name in ((10, "pictures/0001.png"), (20, "pictures/0002-step-7.svg"), (30, "../../etc/passwd")):
        store.ingest([Ingest("e1", 1, 1, "metrics", cursor, notes=[(1.0, "picture", name, 1)])])
    told = feed.delta(102.0).content
    assert told["pictures"] == [[1, 1, "pictures/0001.png", None], [1, 1, "pictures/0002-step-7.svg", 7]]
    assert told["warnings"] == []
    assert "pictures" not in feed.delta(103.0).content


def test_trials_tell_their_values_of_further_objectives(tmp_path):
    objectives = (Objective("acc"), Objective("time", Direction.MINIMIZE))
    with Store.open(Home(tmp_path / "home")) as store:
        spec = ExperimentSpec("digits", Bundle(), objective=objectives[0], more_objectives=objectives[1:], trials=2)
        store.add_experiment("e1", spec, 100.0)
        begin(store, 1)
        begin(store, 2)
        points = [("acc", 0, 1.0, 0.5), ("time", 0, 1.0, 3.0), ("time", 1, 2.0, 4.0)]
        store.ingest([Ingest("e1", 1, 1, "metrics", 10, points=points)])
        content = Feed(store, "e1").delta(101.0).content
    assert [one["label"] for one in content["experiment"]["objectives"]] == ["acc (last)", "time (last)"]
    assert [trial["more_values"] for trial in content["trials"]] == [[4.0], [None]]
