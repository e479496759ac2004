"""Whatever a trial reports is shown, and whatever a disk does to the store is told in clauses."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.card import card
from jupyter_autotrain.views.feed import snapshot

NUMBERS = st.floats(allow_infinity=False).map(lambda x: None if math.isnan(x) else x)
POINTS = st.lists(
    st.tuples(st.sampled_from(["a", "b\x1b[2J", "<b>", "é"]), st.integers(0, 2**62), st.just(1.0), NUMBERS), max_size=12
)
PARAMETERS = st.dictionaries(
    st.text(max_size=6), st.text(max_size=9) | st.floats() | st.integers() | st.none(), max_size=3
)


def test_any_numbers_names_and_parameters_are_shown(examples, tmp_path):
    numbers = itertools.count()

    @examples(40)
    @given(points=POINTS, params=PARAMETERS, reason=st.text(max_size=60))
    def holds(points, params, reason):
        place = Home(tmp_path / f"home-{next(numbers)}")
        with Store.open(place) as store:
            spec = ExperimentSpec("x", Bundle(), objective=Objective("a"))
            store.add_experiment("e1", spec, 1.0)
            store.add_trial("e1", 1, params, 1.0)
            for state in (TrialState.PREPARING, TrialState.RUNNING):
                store.change_state("e1", 1, state, 2.0)
            store.ingest([Ingest("e1", 1, 1, "metrics", 9, points=points, objective=Objective("a"))])
            store.change_state("e1", 1, TrialState.FAILED, 3.0, reason=reason)
            drawn = card(store, store.experiment("e1"), 5.0)
            snapshot(store, "e1", 5.0)
        assert "\x1b" not in drawn.text

    holds()


def read_all(home):
    with Store.open(home) as store:
        for record in store.experiments():
            store.find(record.name)
            store.trials(record.id)
            store.state_changes(record.id)
            store.points(record.id)
            store.metric_names(record.id)
            store.series(record.id, "loss")
            card(store, record, 9.0)
        store.unfinished()


def test_a_store_with_a_flipped_byte_is_read_or_told(examples, home):
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("x", Bundle(), objective=Objective("loss")), 1.0)
        for number in range(1, 6):
            store.add_trial("e1", number, {"lr": 0.1}, 1.0)
            store.change_state("e1", number, TrialState.PREPARING, 2.0)
            store.change_state("e1", number, TrialState.RUNNING, 2.0)
            rows = [("loss", step, 1.0, 0.5) for step in range(20)]
            store.ingest([Ingest("e1", number, 1, "metrics", 9, points=rows, objective=Objective("loss"))])
    read_all(home)
    whole = home.store.read_bytes()
    # Where there is something: most of a small store is empty space.
    told = []
    places = [i for i, byte in enumerate(whole) if byte]

    @examples(250)
    @given(place=st.integers(0, len(places) - 1), bit=st.integers(0, 7))
    def holds(place, bit):
        changed = bytearray(whole)
        changed[places[place]] ^= 1 << bit
        for name in ("-wal", "-shm"):
            home.store.with_name(home.store.name + name).unlink(missing_ok=True)
        home.store.write_bytes(changed)
        try:
            read_all(home)
        except AutotrainError as error:
            told.append(str(error))

    holds()
    assert told
    assert all(told)
