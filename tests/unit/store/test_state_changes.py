"""Whatever is asked of a trial, the store follows the one table of moves."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jupyter_autotrain.agent.states import LEGAL_TRANSITIONS, TrialState, experiment_state
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store import Ingest, Store

STATES = st.sampled_from(sorted(TrialState))
NUMBERS = st.integers(1, 3)
CLOCK = st.floats(-1e9, 1e9)


class Moves(RuleBasedStateMachine):
    """A model of three trials beside the store; the clock jumps at will."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = Home(Path(self.folder.name))
        self.store = Store.open(self.home)
        self.store.add_experiment("a1", ExperimentSpec("a", Bundle()), 0.0)
        self.states = {}
        self.attempts = {}
        self.kept = []
        self.cursors = {}
        self.points = []
        self.closed = self.stopping = False

    def teardown(self):
        self.store.close()
        self.folder.cleanup()

    @rule(number=NUMBERS, now_s=CLOCK)
    def add(self, number, now_s):
        if number in self.states:
            with pytest.raises(StoreError):
                self.store.add_trial("a1", number, {}, now_s)
            return
        self.store.add_trial("a1", number, {}, now_s)
        self.states[number] = TrialState.WAITING
        self.attempts[number] = 1
        self.kept.append((number, 1, TrialState.WAITING, now_s))

    @rule(number=NUMBERS, state=STATES, now_s=CLOCK)
    def move(self, number, state, now_s):
        if number not in self.states or state not in LEGAL_TRANSITIONS[self.states[number]]:
            with pytest.raises(StoreError):
                self.store.change_state("a1", number, state, now_s)
            return
        self.attempts[number] += self.states[number].is_final
        self.store.change_state("a1", number, state, now_s)
        self.states[number] = state
        self.kept.append((number, self.attempts[number], state, now_s))

    @rule(number=NUMBERS, cursor=st.integers(0, 20), values=st.lists(st.floats(-1e6, 1e6) | st.none(), max_size=3))
    def report(self, number, cursor, values):
        points = [("loss", step, 0.0, value) for step, value in enumerate(values)]
        self.store.ingest([Ingest("a1", number, 1, "metrics", cursor, points)])
        if cursor > self.cursors.get(number, 0):
            self.cursors[number] = cursor
            self.points += [(number, *point) for point in points]

    @rule(closed=st.booleans(), stopping=st.booleans())
    def set_flags(self, closed, stopping):
        if closed:
            self.store.close_experiment("a1", 0.0)
        (self.store.request_stop if stopping else self.store.withdraw_stop)("a1")
        self.closed, self.stopping = self.closed or closed, stopping

    @rule()
    def open_again(self):
        self.store.close()
        self.store = Store.open(self.home)

    @invariant()
    def the_store_agrees_with_the_model(self):
        record = self.store.experiment("a1")
        assert {trial.number: trial.state for trial in self.store.trials("a1")} == self.states
        assert {trial.number: trial.attempt for trial in self.store.trials("a1")} == self.attempts
        assert [(m.number, m.attempt, m.state, m.time_s) for m in self.store.state_changes("a1")] == self.kept
        assert record.state == experiment_state(self.states.values(), closed=self.closed, stop_requested=self.stopping)
        assert sum(record.counts.values()) == len(self.states)
        assert [(p.number, p.name, p.step, p.time_s, p.value) for p in self.store.points("a1")] == self.points
        assert (self.store.unfinished() == []) == record.state.is_final


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=12, stateful_step_count=25)


@pytest.mark.parametrize(
    ("trials", "stopped", "state"),
    [
        (("SUCCEEDED", "CANCELLED"), True, "CANCELLED"),
        (("SUCCEEDED",), True, "CANCELLED"),
        (("SUCCEEDED", "FAILED"), False, "SUCCEEDED"),
        (("EARLY_STOPPED", "FAILED"), False, "SUCCEEDED"),
        (("FAILED", "CANCELLED"), False, "FAILED"),
        ((), True, "CANCELLED"),
    ],
)
def test_a_stopped_experiment_reads_cancelled_and_others_by_their_best_trial(trials, stopped, state):
    assert experiment_state(map(TrialState, trials), closed=True, stop_requested=stopped) == state
