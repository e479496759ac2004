"""The handle answers from the store, waits without spinning, and asks the manager when something shall change."""

import pickle
import threading
import time

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment, StopReceipt
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, ManagerError, StoreError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.testing import wait_until

SECRET = "s3cret-value"


class FakeManager:
    """Answers requests in its own thread when it is notified, as the real one does."""

    def __init__(self, home, answer):
        self.home = home
        self.answer = answer
        self.told = []
        self.starts = 0
        self.threads = []

    def ensure(self, home):
        self.starts += 1

    def notify(self, home, message=None):
        self.told.append(message)
        if message is None:
            self.threads.append(threading.Thread(target=self.serve))
            self.threads[-1].start()
        return True

    def serve(self):
        with Store.open(self.home) as store:
            for request in store.pending_requests():
                result = self.answer(store, request)
                if result is not None:
                    store.finish_request(request.id, result)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        yield opened


@pytest.fixture
def fake(home, monkeypatch):
    fake = FakeManager(home, lambda store, request: {})
    monkeypatch.setattr(manager, "ensure", fake.ensure)
    monkeypatch.setattr(manager, "notify", fake.notify)
    yield fake
    for thread in fake.threads:
        thread.join()


def add(home, store, *, trials=(), name="digits", experiment_id="abc", **spec):
    store.add_experiment(experiment_id, ExperimentSpec(name, Bundle(), trials=len(trials) or 1, **spec), 1.0)
    for number, (states, value) in enumerate(trials, 1):
        store.add_trial(experiment_id, number, {"lr": number / 10}, 1.0)
        for state in states:
            store.change_state(experiment_id, number, TrialState(state), 2.0)
        if value is not None:
            store.ingest(
                [Ingest(experiment_id, number, 1, "metrics", 9, [("acc", 0, 1.0, value)], objective=Objective("acc"))]
            )
    return Experiment(home, store, experiment_id, {"TOKEN": SECRET})


RUNNING = ("PREPARING", "RUNNING")
DONE = (*RUNNING, "SUCCEEDED")
FAILED = (*RUNNING, "FAILED")


def test_a_handle_tells_what_the_store_knows(home, store):
    handle = add(home, store, trials=[(DONE, 0.5), (RUNNING, 0.7)], objective=Objective("acc"))
    assert (handle.name, handle.state, handle.id) == ("digits", "RUNNING", "abc")
    assert [(trial.number, trial.state) for trial in handle.trials] == [(1, "SUCCEEDED"), (2, "RUNNING")]
    assert handle.metrics() == [
        {"number": 1, "attempt": 1, "name": "acc", "step": 0, "time_s": 1.0, "value": 0.5},
        {"number": 2, "attempt": 1, "name": "acc", "step": 0, "time_s": 1.0, "value": 0.7},
    ]
    assert handle.metrics(["loss"]) == []
    assert list(handle.series("acc")[2][1]) == [0.7]
    assert repr(handle) == "<Experiment digits RUNNING: 1 of 2 trials ended, best acc (last) 0.7 (trial 2, RUNNING)>"


def test_several_of_one_name_carry_their_numbers(home, store):
    first = add(home, store)
    assert first.name == "digits"
    second = add(home, store, experiment_id="abd")
    assert (first.name, second.name) == ("digits@1", "digits@2")
    assert first != second
    assert {first, Experiment(home, store, "abc", {})} == {first}


@pytest.mark.parametrize(("direction", "best"), [(Direction.MAXIMIZE, 2), (Direction.MINIMIZE, 4)])
def test_every_trial_that_reported_the_objective_may_be_best_whatever_became_of_it(home, store, direction, best):
    cancelled = (*RUNNING, "CANCELLED")
    lost = (*RUNNING, "LOST")
    trials = [(DONE, 0.2), (cancelled, 9.0), (RUNNING, 0.6), (lost, -9.0), (DONE, None), (FAILED, 9.0)]
    assert add(home, store, trials=trials, objective=Objective("acc", direction)).best.number == best
    assert add(home, store, trials=trials, experiment_id="no-objective").best is None


def test_waiting_ends_with_the_experiment_and_looks_only_now_and_then(home, store, fake, monkeypatch):
    handle = add(home, store, trials=[(RUNNING, None)])
    looks = []
    look = store.data_version
    monkeypatch.setattr(Store, "data_version", lambda self: looks.append(1) or look())

    def end():
        with Store.open(home) as other:
            wait_until(lambda: len(looks) > 20, "it has looked for a while")
            other.close_experiment("abc", 2.0)
            other.change_state("abc", 1, TrialState.SUCCEEDED, 3.0)

    thread = threading.Thread(target=end)
    begun_s = time.monotonic()
    thread.start()
    assert handle.wait(timeout_s=60) is True
    waited_s = time.monotonic() - begun_s
    thread.join()
    assert len(looks) < 60 + waited_s / 0.04
    assert handle.state == "SUCCEEDED"


def test_a_wait_with_a_limit_says_that_the_time_was_over(home, store, fake):
    handle = add(home, store, trials=[(RUNNING, None)])
    begun_s = time.monotonic()
    assert handle.wait(timeout_s=0.1) is False
    assert time.monotonic() - begun_s >= 0.1
    assert handle.wait(timeout_s=0) is False


def test_an_interrupt_ends_the_waiting_only(home, store, fake, monkeypatch):
    handle = add(home, store, trials=[(RUNNING, None)])

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        handle.wait()
    assert handle.state == "RUNNING"
    assert store.pending_requests() == []


def test_a_long_wait_brings_a_killed_manager_back(home, store, fake, monkeypatch):
    handle = add(home, store, trials=[(RUNNING, None)], secrets=("TOKEN",))
    monkeypatch.setattr("jupyter_autotrain.client.waiting._NUDGE_EVERY_S", 0.01)

    def come_back(home):
        if handle.state == "RUNNING":
            store.close_experiment("abc", 2.0)
            store.change_state("abc", 1, TrialState.SUCCEEDED, 3.0)

    monkeypatch.setattr(manager, "ensure", come_back)
    assert handle.wait(timeout_s=60) is True
    assert {"secrets": {"abc": {"TOKEN": SECRET}}} in fake.told


def test_a_stop_gives_a_receipt_that_reads_well(home, store, fake):
    handle = add(home, store, trials=[(RUNNING, None)])
    fake.answer = lambda store, request: {
        "pids_ended": [12, 13],
        "pids_killed": [13],
        "pids_left": [],
        "elapsed_s": 0.25,
        "trials": [1],
    }
    receipt = handle.stop(timeout_s=60)
    assert receipt == StopReceipt((12, 13), (13,), (), 0.25, name="digits")
    assert str(receipt) == repr(receipt)
    assert str(receipt) == (
        "digits: stopped in 0.2 s; 2 processes ended (pids 12, 13), 1 of them by force; nothing is left."
    )
    assert "STILL THERE: pid 7" in str(StopReceipt(pids_left=(7,), name="x"))
    cut = StopReceipt(name="x", elapsed_s=4.0, unreachable=("gpu1 does not answer since 07:58; 1 trial goes on there",))
    assert str(cut).splitlines() == [
        "x: the stop is noted; no process has been ended yet.",
        "gpu1 does not answer since 07:58; 1 trial goes on there until it does: then they are stopped.",
    ]


def test_a_receipt_tells_what_stopped_trials_have_left_where_they_ran(home, store, fake):
    handle = add(home, store, trials=[(RUNNING, None), (RUNNING, None)])
    for number in (1, 2):
        directory = home.trial("abc", number, 1)
        directory.mkdir(parents=True, exist_ok=True)
        ref = JobRef("lab", f"abc-{number}-1", {"host": "gpu1"})
        store.annotate("abc", number, ref=ref)
        KeptCheckpoints(ref, {"checkpoints/last.pt": 3_000_000_000}).write(directory)
    (home.trial("abc", 2, 1) / wire.ELSEWHERE_FILE).write_text('{"outputs/model.pt": 2000000000}')
    fake.answer = lambda store, request: {"pids_ended": [12], "elapsed_s": 0.2, "trials": [1, 2]}
    assert str(handle.stop(timeout_s=60)).splitlines() == [
        "digits: stopped in 0.2 s; 1 process ended (pid 12); no process is left.",
        "Left on gpu1: 2 GB of results, which `%autotrain pull digits` brings; 6 GB of checkpoints, from which "
        "`%autotrain retry digits` goes on.",
    ]


def test_a_receipt_tells_what_trials_warned_of(home, store):
    handle = add(home, store)
    store.add_trial("abc", 1, {}, 1.0)
    store.ingest([Ingest("abc", 1, 1, "metrics", 5, notes=[(1.0, "warning", "acc is 'x'\x1b[2J", 12)])])
    receipt = StopReceipt.of("digits", {"pids_ended": []}, handle.warnings(most=3))
    (line,) = str(receipt).splitlines()[1:]
    assert line.startswith("12 warnings in trial 1; first: acc is 'x'")
    assert "\x1b" not in line


def test_stopping_what_has_ended_asks_nobody(home, store, fake):
    handle = add(home, store, trials=[(DONE, None)])
    store.close_experiment("abc", 3.0)
    assert "ended before" in str(handle.stop())
    assert fake.starts == 0


def test_some_trials_can_be_stopped_alone_and_the_receipt_names_them(home, store, fake):
    handle = add(home, store, trials=[(RUNNING, None), (DONE, None), (RUNNING, None)])
    asked = []

    def answer(store, request):
        asked.append(request.args)
        return {"pids_ended": [12], "pids_killed": [], "pids_left": [], "elapsed_s": 0.25, "trials": [3]}

    fake.answer = answer
    assert str(handle.stop({3}, timeout_s=60)) == (
        "digits, trial 3: stopped in 0.2 s; 1 process ended (pid 12); nothing is left."
    )
    assert [args["trials"] for args in asked] == [[3]]
    assert "trial 2: it had ended before; no process was running." in str(handle.stop([2]))
    with pytest.raises(StoreError, match="no trial 9"):
        handle.stop([9])
    assert len(asked) == 1


def test_a_request_that_is_refused_or_never_answered_is_an_error(home, store, fake):
    handle = add(home, store, trials=[(FAILED, None)])
    fake.answer = lambda store, request: {"error": "no such place"}
    with pytest.raises(ManagerError, match="no such place"):
        handle.retry(timeout_s=60)
    fake.answer = lambda store, request: None
    with pytest.raises(ManagerError, match="is kept"):
        handle.retry(timeout_s=0.05)
    assert [request.kind for request in store.pending_requests()] == ["retry"]


def test_logs_outputs_and_sizes_come_from_the_newest_attempt(home, store, tmp_path):
    handle = add(home, store, trials=[(FAILED, None), ((), None)])
    store.change_state("abc", 1, TrialState.WAITING, 3.0)
    store.change_state("abc", 1, TrialState.PREPARING, 3.0)
    for attempt in (1, 2):
        outputs = home.trial("abc", 1, attempt) / "outputs"
        outputs.mkdir(parents=True)
        (outputs.parent / "stdout").write_bytes(f"try {attempt} é".encode() + b"\xff")
        (outputs / "model.pkl").write_bytes(pickle.dumps({"attempt": attempt}))
    assert handle.logs() == handle.logs(1) == handle.logs(handle.trials[0]) == "try 2 é\ufffd"
    assert handle.logs(2) == handle.logs(stream="stderr") == ""
    assert handle.load("model") == {"attempt": 2}
    assert handle.pull(tmp_path / "here") == ["model.pkl"]
    assert (tmp_path / "here" / "model.pkl").exists()
    assert handle.size_bytes() > 0
    with pytest.raises(AutotrainError, match="stream 'out'"):
        handle.logs(stream="out")
    with pytest.raises(StoreError, match="no trial 9"):
        handle.logs(9)
    with pytest.raises(AutotrainError, match="It returned: model"):
        handle.load("net")


def test_where_the_best_trial_returned_nothing_those_that_did_are_named_best_first(home, store):
    stopped = (*RUNNING, "CANCELLED")
    handle = add(home, store, trials=[(DONE, 0.5), (stopped, 0.9), (DONE, 0.7)], objective=Objective("acc"))
    for number in (1, 3):
        outputs = home.trial("abc", number, 1) / "outputs"
        outputs.mkdir(parents=True)
        (outputs / "model.pkl").write_bytes(pickle.dumps(number))
    with pytest.raises(AutotrainError) as error:
        handle.load("model")
    assert error.value.found == "Trial 2 (CANCELLED) has not returned 'model'."
    assert error.value.expected == "Trials that have, best first: 3, 1."
    assert "--trial 3" in error.value.action
    assert handle.load("model", trial=3) == 3


def test_a_request_is_kept_also_where_its_answer_deletes_the_experiment_at_once(home, store, fake, monkeypatch):
    experiment = add(home, store, trials=[(DONE, None)])
    monkeypatch.setattr(manager, "notify", lambda home, message=None: store.delete_experiment(experiment.id) or True)
    request_id = experiment.request("clean", {})
    assert [request.id for request in store.pending_requests()] == [request_id]


def test_an_object_that_cannot_be_rebuilt_says_why(home, store):
    handle = add(home, store, trials=[(DONE, None)])
    outputs = home.trial("abc", 1, 1) / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "model.pkl").write_bytes(b"cno_such_module\nThing\n.")
    with pytest.raises(AutotrainError, match="no_such_module"):
        handle.load("model")


def test_without_any_trial_there_is_nothing_to_read_yet(home, store):
    with pytest.raises(AutotrainError, match="no trial yet"):
        add(home, store).logs()


def test_only_an_ended_experiment_is_deleted_and_then_wholly(home, store):
    handle = add(home, store, trials=[(DONE, None)])
    home.bundle("abc").mkdir(parents=True)
    with pytest.raises(AutotrainError, match="RUNNING"):
        handle.delete()
    store.close_experiment("abc", 3.0)
    handle.delete()
    assert store.experiments() == []
    assert not home.experiment("abc").exists()


def test_a_handle_is_shown_by_the_view_of_a_higher_layer(home, store, monkeypatch):
    monkeypatch.setattr("jupyter_autotrain.widgets.show", lambda handle: ("shown", handle.id))
    monkeypatch.setattr("jupyter_autotrain.views.card.mime_bundle", lambda handle: {"text/html": handle.id})
    handle = add(home, store)
    assert handle.show() == ("shown", "abc")
    assert handle._repr_mimebundle_(include=None) == {"text/html": "abc"}


def test_a_handle_shows_no_secret(home, store):
    handle = add(home, store, secrets=("TOKEN",))
    assert SECRET not in repr(handle)
    assert SECRET not in repr(handle.record)


def test_waiting_in_short_turns_brings_a_killed_manager_back_too(home, store, fake):
    handle = add(home, store, trials=[(RUNNING, None)])
    assert [handle.wait(timeout_s=0.01) for _ in range(3)] == [False] * 3
    assert fake.starts == 3


def test_the_pareto_front_holds_what_no_trial_beats_in_all_objectives(home):
    spec = ExperimentSpec(
        "front", Bundle(), trials=4, objective=Objective("acc"), more_objectives=(Objective("ms", Direction.MINIMIZE),)
    )
    with Store.open(home) as store:
        store.add_experiment("front", spec, 0.0)
        for number, (acc, ms) in enumerate(((0.9, 9.0), (0.8, 3.0), (0.7, 5.0), (0.95, None)), 1):
            store.add_trial("front", number, {}, 0.0)
            points = [("acc", 0, 0.0, acc), *([("ms", 0, 0.0, ms)] if ms else [])]
            store.ingest([Ingest("front", number, 1, wire.METRICS, 10, points, objective=spec.objective)])
            store.change_state("front", number, TrialState.FAILED, 1.0)
        front = Experiment(home, store, "front", {}).pareto_front()
        assert [trial.number for trial in front] == [1, 2]
