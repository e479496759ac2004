"""The one queue of a home: priorities, weighted fair shares, gangs, and backfilling, on simulated clusters."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.manager.queue.reservations import Reservation, ReservationTable
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest
from jupyter_autotrain.manager.queue.turns import Claim, in_turn
from jupyter_autotrain.manager.resources import ResourceAllocator


def started(slots, *claims):
    """Return how many trials of each experiment start on so many equal slots."""
    for claim, _ in in_turn(claims):
        if sum(one.held for one in claims) < slots:
            claim.held += 1
    return [claim.held for claim in claims]


def claim(wanted, weight=1.0, priority=0):
    return Claim("e", priority, weight, waiting=deque(range(1, wanted + 1)))


def test_shares_are_in_proportion_to_what_is_wanted_and_to_weights():
    assert started(8, claim(10), claim(30)) == [2, 6]
    assert started(8, claim(10, weight=3), claim(30)) == [4, 4]
    assert started(8, claim(2), claim(2)) == [2, 2]


def test_a_higher_priority_goes_first_and_leaves_the_rest_to_others():
    assert started(8, claim(10), claim(5, priority=1)) == [3, 5]


def test_of_equal_claims_the_older_experiment_and_the_lower_number_come_first():
    claims = [Claim("a", waiting=deque([4, 7])), Claim("b", waiting=deque([1]))]
    assert [(one.id, number) for one, number in in_turn(claims)] == [("a", 4), ("a", 7), ("b", 1)]


@settings(max_examples=60)
@given(
    slots=st.integers(1, 64),
    wants=st.lists(st.tuples(st.integers(1, 60), st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=6),
)
def test_no_share_is_larger_than_the_next_trial_of_another_would_make_its_own(slots, wants):
    claims = [claim(wanted, weight) for wanted, weight in wants]
    held = started(slots, *claims)
    assert sum(held) == min(slots, sum(wanted for wanted, _ in wants))
    shares = [many / (weight * wanted) for many, (wanted, weight) in zip(held, wants, strict=True)]
    for one, (wanted, weight), share in zip(held, wants, shares, strict=True):
        before = (one - 1) / (weight * wanted) if one else -math.inf
        hungry = [other for other, has, (more, _) in zip(shares, held, wants, strict=True) if has < more]
        assert all(before <= other for other in hungry), (share, shares)


@dataclass
class Running:
    experiment: int
    number: int
    ends_s: float
    devices: frozenset[str]


@dataclass
class Experiment:
    """Trials that each take as long and as many GPUs."""

    trials: int
    gpus: int
    nodes: int = 1
    takes_s: float = 10.0
    priority: int = 0
    weight: float = 1.0
    is_measured: bool = True
    created: int = 0
    begun_s: dict[int, float] = field(default_factory=dict)


class Cluster:
    """Nodes of GPUs whose trials end when their time is over; each round goes through the queue."""

    def __init__(self, nodes, gpus, experiments):
        inventory = []
        for n in range(nodes):
            devices = tuple(Accelerator(g, f"n{n}/{g}") for g in range(gpus))
            inventory.append(Node(f"n{n}", 64.0, None, devices))
        self.table = ReservationTable()
        self.allocator = ResourceAllocator(Inventory(tuple(inventory)), self.table, "lab")
        self.devices = nodes * gpus
        self.experiments = experiments
        self.running: dict[str, Running] = {}
        self.now_s = 0.0
        self.refused: list[tuple[int, int]] = []

    def request(self, index, number):
        one = self.experiments[index]
        takes_s = one.takes_s if one.is_measured else math.inf
        resources = Resources(gpus=one.gpus, nodes=one.nodes)
        label = f"trial {number} of e{index}"
        return ResourceRequest(
            f"{index}-{number}-1", label, resources, AcceleratorPolicy(), priority=one.priority, takes_s=takes_s,
            waited_s=self.now_s,
        )  # fmt: skip

    def round(self):
        self.table.waiting.clear()
        self.table.now_s = self.now_s
        self.refused = []
        held = Counter(one.experiment for one in self.running.values())
        claims = []
        for index, one in enumerate(self.experiments):
            numbers = deque(n for n in range(1, one.trials + 1) if n not in one.begun_s)
            claims.append(Claim(str(index), one.priority, one.weight, held[index], numbers))
        full = set()
        for turn, number in in_turn(claims):
            index = int(turn.id)
            if index in full:
                continue
            request = self.request(index, number)
            answer = self.allocator.try_allocate(request)
            if isinstance(answer, Reservation):
                self.start(index, number, answer)
                turn.held += 1
            else:
                full.add(index)
                self.refused.append((index, number))
                self.allocator.wait(request, answer)

    def start(self, index, number, answer):
        one = self.experiments[index]
        placed = answer.placement.nodes
        devices = frozenset(answer.placement.accelerators)
        assert len({node.node for node in placed}) == one.nodes
        assert {len(node.accelerators) for node in placed} == {one.gpus}
        assert not any(devices & other.devices for other in self.running.values())
        self.table.reserve(answer)
        one.begun_s[number] = self.now_s
        self.running[answer.request.job_id] = Running(index, number, self.now_s + one.takes_s, devices)

    def end_next(self):
        self.now_s = min(one.ends_s for one in self.running.values())
        for job_id, one in list(self.running.items()):
            if one.ends_s <= self.now_s:
                del self.running[job_id]
                self.table.release(job_id)

    @property
    def free(self):
        return self.devices - sum(len(one.devices) for one in self.running.values())

    def play(self):
        self.round()
        while self.running:
            self.end_next()
            self.round()


def experiments(most_gpus, most_nodes):
    return st.lists(
        st.builds(
            Experiment,
            trials=st.integers(1, 8),
            gpus=st.integers(1, most_gpus),
            nodes=st.integers(1, most_nodes),
            takes_s=st.sampled_from([1.0, 5.0, 20.0, 90.0]),
            priority=st.integers(0, 2),
            weight=st.sampled_from([0.5, 1.0, 3.0]),
            is_measured=st.booleans(),
        ),
        min_size=1,
        max_size=5,
    )


@settings(max_examples=50, deadline=None)
@given(found=st.integers(1, 4).flatmap(lambda nodes: st.tuples(st.just(nodes), experiments(4, nodes))))
def test_all_trials_run_with_all_that_they_ask_for_and_no_device_twice(found):
    nodes, wanted = found
    Cluster(nodes, 4, wanted).play()
    assert all(len(one.begun_s) == one.trials for one in wanted)


@settings(max_examples=50, deadline=None)
@given(wanted=experiments(1, 1), nodes=st.integers(1, 4))
def test_no_device_is_idle_while_a_trial_waits_that_fits_on_it(wanted, nodes):
    cluster = Cluster(nodes, 2, wanted)
    cluster.round()
    while cluster.running:
        assert not cluster.refused or not cluster.free
        cluster.end_next()
        cluster.round()


@settings(max_examples=50, deadline=None)
@given(small=experiments(2, 1), begun=st.integers(1, 3), gpus=st.integers(2, 4))
def test_small_trials_that_go_first_never_delay_the_large_one_that_waits(small, begun, gpus):
    """The large one begins when those have ended that ran as it came, as if there were no others."""
    for one in small:
        one.priority = 0
        one.is_measured = True
    early = Experiment(begun, 1, takes_s=50.0, priority=9)
    large = Experiment(1, gpus, takes_s=5.0, priority=5)
    cluster = Cluster(1, 4, [early, large, *small])
    cluster.play()
    assert large.begun_s[1] == (0.0 if begun + gpus <= 4 else 50.0)


def test_short_trials_use_what_a_large_one_waits_for_and_long_or_unmeasured_ones_do_not():
    shorts = {"short": (5.0, True, 0.0), "long": (80.0, True, 50.0), "unmeasured": (5.0, False, 50.0)}
    for name, (takes_s, is_measured, begins_s) in shorts.items():
        early = Experiment(1, 1, takes_s=45.0, priority=9)
        large = Experiment(1, 4, takes_s=5.0, priority=5)
        late = Experiment(1, 2, takes_s=takes_s, is_measured=is_measured)
        cluster = Cluster(1, 4, [early, large, late])
        cluster.play()
        assert (large.begun_s[1], late.begun_s[1]) == (45.0, begins_s), name


def test_a_trial_that_has_waited_for_long_is_overtaken_by_none():
    early = Experiment(1, 1, takes_s=2000.0, priority=9)
    large = Experiment(1, 4, takes_s=5.0, priority=5)
    small = Experiment(40, 3, takes_s=100.0)
    Cluster(1, 4, [early, large, small]).play()
    overtaken = [begun_s for begun_s in small.begun_s.values() if begun_s < large.begun_s[1]]
    assert overtaken
    assert max(overtaken) < 600.0
    assert large.begun_s[1] == 2000.0


def test_gangs_find_whole_nodes_as_small_trials_are_packed():
    small = Experiment(4, 1)
    gang = Experiment(1, 4, nodes=3)
    cluster = Cluster(4, 4, [small, gang])
    cluster.round()
    assert gang.begun_s == {1: 0.0}


def test_the_refusal_names_what_comes_first_and_its_priority():
    early = Experiment(1, 3, priority=9)
    cluster = Cluster(1, 4, [early, Experiment(1, 2, priority=7), Experiment(1, 1, is_measured=False)])
    cluster.round()
    second = cluster.allocator.try_allocate(cluster.request(2, 1))
    assert second.sentence == "waits for GPUs behind trial 1 of e1, which comes first by its priority of 7"
    cluster.table.waiting.clear()
    first = cluster.allocator.try_allocate(cluster.request(1, 1))
    assert first.sentence == (
        "waits for 2 GPUs, 1 free of 4: each of GPUs 0, 1, 2 is held by trial 1 of e0 (at most 1 per GPU); "
        "it is free when that ends"
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_devices_are_shared_out_to_the_end(seed):
    rng = random.Random(seed)
    wanted = []
    for _ in range(60):
        one = Experiment(rng.randint(1, 40), rng.choice([1, 1, 2, 4, 8]), nodes=rng.choice([1, 1, 1, 2, 8]))
        one.takes_s = rng.choice([1.0, 7.0, 30.0])
        one.priority = rng.randint(0, 2)
        one.weight = rng.choice([0.5, 1.0, 3.0])
        one.is_measured = rng.random() < 0.5
        wanted.append(one)
    Cluster(125, 8, wanted).play()
    assert all(len(one.begun_s) == one.trials for one in wanted)


def test_the_manager_shares_its_slots_out_and_goes_on_so_as_trials_end(world):
    world.backend.inventory = Inventory((Node("here", 8.0, None),))
    asked = {"trials": 60, "resources": Resources(cpus=1.0)}
    few = world.submit("few", concurrency=10, **asked)
    many = world.submit("many", concurrency=30, **asked)
    for _ in range(4):
        world.step()
        running = {name: world.states(name).count("RUNNING") for name in (few, many)}
        assert running == {few: 2, many: 6}
        for name in (few, many):
            (first, *_) = [trial for trial in world.trials(name) if trial.state == "RUNNING"]
            world.backend.jobs[f"{name}-{first.number}-1"].end()
    world.request("update", few, weight=3)
    for _ in range(6):
        world.step()
        for trial in world.trials(many):
            if trial.state == "RUNNING":
                world.backend.jobs[f"{many}-{trial.number}-1"].end()
                break
    world.step()
    assert [world.states(name).count("RUNNING") for name in (few, many)] == [4, 4]
