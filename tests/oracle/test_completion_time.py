"""Which backend a trial is put on, against every possible placement, in a simulation of an experiment."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.manager.completion_time import BackendTimes, Candidate, choose, estimates, explain


@dataclass
class Place:
    """A simulated backend: how many trials it runs at the same time, and how long each takes."""

    slots: int
    start_s: float
    run_s: float
    times: BackendTimes = field(default_factory=BackendTimes)
    placed_s: list = field(default_factory=list)

    @property
    def whole_s(self):
        return self.start_s + self.run_s

    def measured(self):
        self.times.add(TrialState.SUCCEEDED, self.start_s, self.run_s)
        return self


def makespan(places, trials, concurrency):
    """Run an experiment: each round asks the rule for the trials that wait, oldest first."""
    now = 0.0
    left = trials
    waiting = 0
    ends = []
    while left or waiting or ends:
        while left and waiting + len(ends) < concurrency:
            left, waiting = left - 1, waiting + 1
        waiting -= start_round(places, waiting, now, ends)
        now, index, placed_s = heapq.heappop(ends)
        places[index].placed_s.remove(placed_s)
        places[index].measured()
    return now


def start_round(places, waiting, now, ends):
    meant = [0] * len(places)
    started = 0
    for _ in range(waiting):
        found = estimates([candidate(places, index, now, meant[index]) for index in range(len(places))])
        index = found.index(choose(found))
        place = places[index]
        if len(place.placed_s) >= place.slots:
            meant[index] += 1
            continue
        place.placed_s.append(now)
        heapq.heappush(ends, (now + place.whole_s, index, now))
        started += 1
    return started


def candidate(places, index, now, waiting):
    place = places[index]
    ages_s = tuple(now - placed_s for placed_s in place.placed_s)
    return Candidate(str(index), place.times, ages_s, place.slots, len(ages_s) < place.slots, waiting)


def best_makespan(places, trials):
    """Return the shortest of all ways to share equal trials out."""
    totals = []
    for shares in combinations_with_replacement(range(len(places)), trials):
        rounds = [-(-shares.count(index) // place.slots) for index, place in enumerate(places)]
        totals.append(max(count * place.whole_s for count, place in zip(rounds, places, strict=True)))
    return min(totals)


def alone(place, trials):
    return -(-trials // place.slots) * place.whole_s


places_of = st.lists(
    st.builds(Place, st.integers(1, 3), st.sampled_from([0.0, 1.0, 5.0]), st.sampled_from([1.0, 3.0, 10.0, 40.0])),
    min_size=1,
    max_size=3,
)


@settings(max_examples=120)
@given(places_of, st.integers(1, 7))
def test_with_measured_times_the_makespan_is_the_shortest_of_all_placements(places, trials):
    expected = best_makespan(places, trials)
    assert makespan([place.measured() for place in places], trials, concurrency=trials) == pytest.approx(expected)


@settings(max_examples=150)
@given(places_of, st.integers(1, 40), st.integers(0, 9))
def test_without_measurements_it_is_never_worse_than_the_best_backend_alone_by_more_than_the_first_trials(
    places, trials, more
):
    concurrency = max(place.slots for place in places) + more
    shortest = min(alone(place, trials) for place in places)
    first_trials_s = max(place.whole_s for place in places)  # that measure each backend, side by side
    assert makespan(places, trials, concurrency) <= shortest + first_trials_s + 1e-9


def test_a_trial_waits_for_the_fast_backend_where_that_ends_sooner_than_the_slow_one_that_is_free():
    fast = Place(1, 0.0, 2.0).measured()
    slow = Place(1, 0.0, 60.0).measured()
    fast.placed_s = [0.0]
    found = estimates([candidate([fast, slow], index, 1.0, 0) for index in (0, 1)])
    assert choose(found).candidate.name == "0"
    assert [one.completion_s for one in found] == [3.0, 60.0]
    assert explain(found[0], found).startswith("0, where it ends first: in about 3.0 s (1.0 s until a slot is free")


def test_a_trial_that_is_long_overdue_is_not_waited_for():
    fast = Place(1, 0.0, 2.0).measured()
    slow = Place(1, 0.0, 60.0).measured()
    fast.placed_s = [0.0]
    chosen = []
    for now in (30.0, 70.0):
        found = estimates([candidate([fast, slow], index, now, 0) for index in (0, 1)])
        chosen.append(choose(found).candidate.name)
    assert chosen == ["0", "1"]


def test_a_weight_prefers_a_backend_up_to_that_many_times_the_time():
    times = [Place(1, 0.0, 10.0).measured().times, Place(1, 0.0, 25.0).measured().times]
    for prefer, expected in ((2.0, "fast"), (3.0, "own")):
        found = estimates([Candidate("fast", times[0]), Candidate("own", times[1], prefer=prefer)])
        assert choose(found).candidate.name == expected
    assert "own, which is preferred (`prefer: 3`)" in explain(choose(found), found)


def test_each_backend_that_is_free_is_tried_once_in_order_of_preference():
    first = Candidate("a", BackendTimes())
    second = Candidate("b", BackendTimes(), prefer=2.0)
    found = estimates([first, second])
    assert choose(found).candidate is second
    assert explain(choose(found), found) == "b as the first one there, which measures it"


def test_a_backend_where_trials_fail_at_once_is_not_a_fast_one():
    good = Place(1, 0.0, 10.0).measured()
    broken = Place(1, 0.0, 0.1)
    for _ in range(3):
        broken.times.add(TrialState.FAILED, 0.0, 0.1)
    found = estimates([Candidate("good", good.times), Candidate("broken", broken.times)])
    assert choose(found).candidate.name == "good"
    assert found[1].run_s == 40.0


def test_a_backend_where_nothing_succeeds_is_kept_away_from_however_long_the_others_take():
    times = BackendTimes()
    broken = BackendTimes()
    for _ in range(4):
        times.add(TrialState.SUCCEEDED, 0.0, 600.0)
    broken.add(TrialState.FAILED, 0.0, 0.4)
    broken.add(TrialState.FAILED, 0.0, 0.4)
    busy = Candidate("good", times, ages_s=(1.0,), is_free=False, waiting=5)
    assert choose(estimates([busy, Candidate("broken", broken)])).candidate is busy
    for _ in range(20):
        times.add(TrialState.FAILED, 0.0, 1.0)  # the cell itself fails often: it is not the backend
    assert choose(estimates([busy, Candidate("broken", broken)])).candidate.name == "broken"


def test_a_backend_that_fails_fast_is_not_better_than_one_whose_first_trial_still_runs():
    broken = BackendTimes()
    broken.add(TrialState.FAILED, 0.0, 0.4)
    running = Candidate("here", BackendTimes(), ages_s=(100.0,), is_free=False)
    assert choose(estimates([running, Candidate("lab", broken)])).candidate is running


def test_the_first_trial_waits_a_moment_for_the_first_backend_to_be_known_and_the_second_does_not():
    here = Candidate("here", BackendTimes(), is_free=False, is_pending=True)
    lab = Candidate("lab", BackendTimes())
    assert choose(estimates([here, lab])).candidate is here
    assert choose(estimates([replace(here, waiting=1), lab])).candidate is lab
    assert choose(estimates([replace(here, is_pending=False), lab])).candidate is lab
