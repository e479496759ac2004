"""The store keeps what it is given, in order, once."""

import json
import math
import sqlite3
import stat
import threading

import pytest

from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Placement
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.store import Ingest, Store


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        yield opened


def spec(name="mnist", **rest):
    return ExperimentSpec(name, Bundle(), **rest)


def run_to(store, experiment_id, number, state, now_s=1.0):
    path = {TrialState.WAITING: [], TrialState.PREPARING: ["PREPARING"], TrialState.RUNNING: ["PREPARING", "RUNNING"]}
    for step in path.get(state, ["PREPARING", "RUNNING", state]):
        store.change_state(experiment_id, number, TrialState(step), now_s)


def test_a_home_is_private_and_the_journal_is_named(store, home):
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    store.add_experiment("a1", spec(), 1.0)
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.root.glob("store.sqlite*")} == {0o600}
    assert store.journal == "wal"


def test_an_empty_home_that_others_could_enter_is_made_private(home):
    home.root.mkdir(mode=0o755)
    Store.open(home).close()
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700


def test_a_spec_comes_back_as_it_was_given(store, home):
    given = spec(objective=Objective("acc"), search={"lr": Uniform(1e-5, 1e-1, log=True)}, env={"A": "1"}, trials=3)
    store.add_experiment("a1", given, 5.0)
    with Store.open(home) as other:
        assert other.experiment("a1").spec == given


def test_names_are_counted_and_a_number_is_never_given_twice(store):
    versions = [store.add_experiment(f"id{n}", spec(), 1.0).version for n in range(3)]
    store.delete_experiment("id2")
    assert [*versions, store.add_experiment("id9", spec(), 1.0).version] == [1, 2, 3, 4]
    assert store.add_experiment("other", spec("cifar"), 1.0).version == 1


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("mnist", "bb2"),
        ("mnist@1", "aa1"),
        ("cc", "cc3"),
        ("-1", "cc3"),
        ("-2", "bb2"),
        ("_", "cc3"),
        (" mnist ", "bb2"),
        ("we@ird", "dd4"),
    ],
)
def test_an_experiment_is_found_by_what_a_person_writes(store, reference, found):
    if found == "dd4":
        store.add_experiment("dd4", spec("we@ird"), 1.0)
    store.add_experiment("aa1", spec(), 9.0)
    store.add_experiment("bb2", spec(), 3.0)
    store.add_experiment("cc3", spec("cifar"), 1.0)
    assert store.find(reference).id == found


@pytest.mark.parametrize("reference", ["minst", "", "mnist@7", "-9", "%", "zz"])
def test_an_unknown_reference_is_answered_with_near_names(store, reference):
    store.add_experiment("aa1", spec(), 1.0)
    with pytest.raises(UnknownExperimentError) as caught:
        store.find(reference)
    assert "mnist" in caught.value.expected
    assert caught.value.action


def test_an_id_prefix_of_two_experiments_is_refused_with_both(store):
    store.add_experiment("aa1", spec(), 1.0)
    store.add_experiment("aa2", spec("cifar"), 1.0)
    with pytest.raises(UnknownExperimentError, match=r"cifar@1.*mnist@1|mnist@1.*cifar@1"):
        store.find("aa")


def test_the_newest_comes_first_whatever_the_clock_says(store):
    for number, now_s in enumerate([100.0, 50.0, 75.0]):
        store.add_experiment(f"id{number}", spec(), now_s)
    assert [record.id for record in store.experiments(2)] == ["id2", "id1"]


def test_a_state_is_derived_from_trials_flags_and_closing(store):
    def state():
        return store.experiment("a1").state

    store.add_experiment("a1", spec(), 1.0)
    assert state() == ExperimentState.WAITING
    store.add_trial("a1", 1, {}, 2.0)
    run_to(store, "a1", 1, TrialState.RUNNING)
    assert state() == ExperimentState.RUNNING
    store.request_stop("a1")
    assert state() == ExperimentState.STOPPING
    store.change_state("a1", 1, TrialState.CANCELLED, 3.0)
    store.close_experiment("a1", 2.5)
    assert state() == ExperimentState.CANCELLED
    assert store.experiment("a1").ended_s == 3.0
    store.withdraw_stop("a1")
    store.change_state("a1", 1, TrialState.WAITING, 4.0)
    assert state() == ExperimentState.WAITING
    assert store.experiment("a1").ended_s is None
    assert [record.id for record in store.unfinished()] == ["a1"]
    run_to(store, "a1", 1, TrialState.SUCCEEDED, 5.0)
    assert state() == ExperimentState.SUCCEEDED
    assert store.experiment("a1").counts == {TrialState.SUCCEEDED: 1}
    assert store.unfinished() == []


def test_closing_keeps_the_first_time_and_the_last_reason(store):
    store.add_experiment("a1", spec(), 1.0)
    store.close_experiment("a1", 2.0, "budget spent")
    store.close_experiment("a1", 9.0)
    record = store.experiment("a1")
    assert (record.ended_s, record.reason, record.closed) == (2.0, "budget spent", True)


def test_a_trial_carries_its_marks_and_a_retry_begins_clean(store):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {"lr": 0.1, "net": {"_name": "mlp"}}, 1.0)
    ref = JobRef("local", "a1-1-1", {"pid": [7, 1.5, "boot"]})
    store.change_state("a1", 1, TrialState.PREPARING, 2.0, placement=Placement((NodePlacement("here", ("GPU-1",)),)))
    store.annotate("a1", 1, ref=ref)
    store.change_state("a1", 1, TrialState.RUNNING, 3.0)
    store.ingest([Ingest("a1", 1, 1, "metrics", 5, [("acc", 0, 3.0, 0.5)], objective=Objective("acc"))])
    failed = store.change_state("a1", 1, TrialState.FAILED, 4.0, reason="out of memory")
    assert (failed.ref, failed.gpus, failed.value, failed.started_s, failed.ended_s) == (ref, ("GPU-1",), 0.5, 3.0, 4.0)
    assert failed.reason == "out of memory"
    again = store.change_state("a1", 1, TrialState.WAITING, 5.0)
    assert (again.attempt, again.ref, again.gpus, again.value, again.started_s) == (2, None, (), 0.5, None)
    assert again.params == {"lr": 0.1, "net": {"_name": "mlp"}}
    assert [(move.state, move.attempt, move.time_s) for move in store.state_changes("a1")] == [
        ("WAITING", 1, 1.0),
        ("PREPARING", 1, 2.0),
        ("RUNNING", 1, 3.0),
        ("FAILED", 1, 4.0),
        ("WAITING", 2, 5.0),
    ]
    assert store.state_changes("a1")[3].reason == "out of memory"


def test_an_illegal_move_names_both_states_and_changes_nothing(store):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {}, 1.0)
    before = (store.trials("a1"), store.state_changes("a1"))
    with pytest.raises(StoreError, match=r"from WAITING to SUCCEEDED"):
        store.change_state("a1", 1, TrialState.SUCCEEDED, 2.0)
    assert (store.trials("a1"), store.state_changes("a1")) == before


def test_a_trial_is_added_once_and_a_missing_one_is_an_error(store):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {}, 1.0)
    with pytest.raises(StoreError):
        store.add_trial("a1", 1, {}, 1.0)
    with pytest.raises(StoreError, match="no trial 2"):
        store.trial("a1", 2)
    with pytest.raises(UnknownExperimentError):
        store.trials("zz")


def test_points_come_back_once_in_order_with_nan_as_none(store):
    store.add_experiment("a1", spec(), 1.0)
    points = [("loss", 0, 1.0, 0.5), ("acc", 0, 1.0, 0.1), ("loss", 1, 2.0, None), ("loss", 2, 3.0, 0.25)]
    row = Ingest("a1", 1, 1, "metrics", 80, points, [(1.0, "info", "hello", 1)])
    store.ingest([row, row])
    store.ingest([Ingest("a1", 1, 1, "metrics", 79, [("loss", 9, 9.0, 9.0)])])
    got = store.points("a1")
    assert [(p.name, p.step, p.value) for p in got] == [
        ("loss", 0, 0.5),
        ("loss", 1, None),
        ("loss", 2, 0.25),
        ("acc", 0, 0.1),
    ]
    assert [p.id for p in got] == [1, 2, 3, 4]
    assert store.points("a1", after_id=2) == got[2:]
    assert store.points("a1", limit=1) == got[:1]
    assert store.points("a1", names=["acc"]) == got[3:]
    assert store.metric_names("a1") == store.metric_names("a1", 1, 1) == ["loss", "acc"]
    assert store.metric_names("a1", 1, 2) == store.metric_names("a1", 2) == []
    assert [(note.text, note.level) for note in store.notes("a1")] == [("hello", "info")]
    assert store.cursor("a1", 1, 1, "metrics") == 80
    assert store.cursor("a1", 1, 1, "stdout") == 0


def test_a_note_sent_again_is_kept_once_with_its_newest_count_and_is_seen_by_who_reads_on(store):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {}, 1.0)
    for cursor, times in ((10, 1), (20, 10), (30, 12)):
        store.ingest([Ingest("a1", 1, 1, "metrics", cursor, notes=[(1.0, "warning", "acc is 'x'", times)])])
    store.ingest([Ingest("a1", 1, 2, "metrics", 10, notes=[(1.0, "warning", "acc is 'x'", 1)])])
    first, second = store.notes("a1")
    assert [(note.attempt, note.text, note.count) for note in (first, second)] == [
        (1, "acc is 'x'", 12),
        (2, "acc is 'x'", 1),
    ]
    assert store.notes("a1", after_id=first.id) == [second]


def test_the_last_step_of_an_attempt_is_that_of_its_newest_report(store):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {}, 1.0)
    assert store.last_steps("a1") == {}
    for cursor, name, step in ((10, "loss", 3), (20, "acc", 7)):
        store.ingest([Ingest("a1", 1, 1, "metrics", cursor, [(name, step, 1.0, 0.5)])])
    store.add_trial("a1", 2, {}, 1.0)
    store.ingest([Ingest("a1", 2, 3, "metrics", 10, [("loss", 5, 1.0, 0.5), ("loss", 6, 1.0, 0.5)])])
    assert store.last_steps("a1") == {(1, 1): 7, (2, 3): 6}


def test_a_series_is_one_curve_of_all_attempts_of_each_trial(store):
    store.add_experiment("a1", spec(), 1.0)
    for number, attempt, cursor, step, value in [
        (1, 1, 9, 0, 1.0),
        (2, 1, 9, 0, 2.0),
        (1, 2, 9, 0, 3.0),
        (1, 2, 18, 1, None),
        (2, 2, 9, 4, 5.0),
        (2, 3, 9, 2, 6.0),
    ]:
        store.ingest([Ingest("a1", number, attempt, "metrics", cursor, [("loss", step, 0.0, value)])])
    series = store.series("a1", "loss")
    assert list(series) == [1, 2]
    assert list(series[1][0]) == [0, 1]
    assert series[1][1][0] == 3.0
    assert math.isnan(series[1][1][1])
    assert [list(column) for column in series[2]] == [[0, 2], [2.0, 6.0]]
    [timed] = store.timed_series("a1", "loss", [2]).values()
    assert [list(piece[0].cast("q")) for piece in timed] == [[0], [2]]
    assert store.series("a1", "nothing") == {}


def test_what_belongs_to_a_deleted_experiment_goes_with_it(store, home):
    store.add_experiment("a1", spec(), 1.0)
    store.add_trial("a1", 1, {}, 1.0)
    store.ingest([Ingest("a1", 1, 1, "metrics", 5, [("loss", 0, 0.0, 1.0)], [(0.0, "info", "x", 1)])])
    store.delete_experiment("a1")
    store.ingest([Ingest("a1", 1, 1, "metrics", 9, [("loss", 1, 0.0, 1.0)])])
    with sqlite3.connect(home.store) as connection:
        for table in ("experiments", "trials", "moves", "cursors", "series", "chunks", "notes"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    connection.close()


def test_a_request_waits_until_its_first_answer(store):
    request_id = store.add_request("stop", "a1", {"force": True}, 1.0)
    assert [request.id for request in store.pending_requests()] == [request_id]
    store.finish_request(request_id, {"pids_ended": [1, 2]})
    store.finish_request(request_id, {"late": True})
    request = store.request(request_id)
    assert (request.done, request.args, request.result) == (True, {"force": True}, {"pids_ended": [1, 2]})
    assert store.pending_requests() == []
    with pytest.raises(StoreError):
        store.request(99)


def test_the_data_version_differs_after_a_change_by_anyone(store, home):
    seen = {store.data_version()}
    assert store.data_version() in seen
    store.add_experiment("a1", spec(), 1.0)
    assert store.data_version() not in seen
    seen.add(store.data_version())
    with Store.open(home) as other:
        other.add_trial("a1", 1, {}, 1.0)
    assert store.data_version() not in seen


def test_threads_share_a_store(store):
    store.add_experiment("a1", spec(), 1.0)

    def work(number):
        store.add_trial("a1", number, {}, 1.0)
        for cursor in range(1, 21):
            store.ingest([Ingest("a1", number, 1, "metrics", cursor, [("loss", cursor, 0.0, 1.0)])])
            store.points("a1")

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: list(steps) for number, (steps, _) in store.series("a1", "loss").items()} == {
        number: list(range(1, 21)) for number in (1, 2, 3, 4)
    }


def test_a_spec_of_a_newer_version_is_read_without_its_new_keys(store, home):
    store.add_experiment("a1", spec(), 1.0)
    with sqlite3.connect(home.store) as connection:
        text = json.loads(connection.execute("SELECT spec FROM experiments").fetchone()[0])
        connection.execute("UPDATE experiments SET spec = ?", (json.dumps({**text, "someday": 1}),))
    connection.close()
    assert store.experiment("a1").spec == spec()


def test_pieces_give_as_columns_what_arrived_after_the_last_one_seen(home: Home) -> None:
    with Store.open(home) as store:
        record = store.add_experiment("pieces", ExperimentSpec(name="pieces", bundle=Bundle()), 1.0)
        store.add_trial(record.id, 1, {}, 1.0)
        store.ingest([Ingest(record.id, 1, 1, "metrics", 10, points=[("loss", 0, 1.0, 0.5), ("loss", 1, 1.0, None)])])
        [first] = store.metric_chunks(record.id)
        store.ingest([Ingest(record.id, 1, 1, "metrics", 20, points=[("loss", 2, 1.0, 0.25)])])
        [second] = store.metric_chunks(record.id, after_id=first.last_id)
    assert (first.name, first.number, first.attempt, list(first.columns[0])) == ("loss", 1, 1, [0, 1])
    assert math.isnan(first.columns[1][1])
    assert (list(second.columns[0]), list(second.columns[1])) == ([2], [0.25])


def test_whatever_a_trial_sends_is_taken_in(store):
    store.add_experiment("a1", spec("half \ud800"), 1.0)
    store.add_trial("a1", 1, {"text": "\udcff"}, 1.0)
    points = [("n\udcff", 10**30, 0.0, math.inf), ("n\udcff", -(10**30), 0.0, -math.inf), ("", 0, 0.0, 1.0)]
    store.ingest([Ingest("a1", 1, 1, "metrics", 9, points, [(0.0, "info", "t\ud800\0t", 1)])])
    store.change_state("a1", 1, TrialState.FAILED, 2.0, reason="r\udcff")
    assert [(p.name, p.step, p.value) for p in store.points("a1")] == [
        ("n?", 2**63 - 1, None),
        ("n?", -(2**63), None),
        ("", 0, 1.0),
    ]
    assert store.notes("a1")[0].text == "t?\0t"
    assert store.trial("a1", 1).reason == "r?"
    assert store.find("half \ud800").name == "half ?"
