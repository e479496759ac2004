"""Who gets what, and whether a refusal names its true cause."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.manager.queue.reservations import Reservation
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable
from jupyter_autotrain.manager.resources import ResourceAllocator

GB = 1_000_000_000


def gpu(index, *, busy=False, free=8 * GB):
    return Accelerator(index, f"GPU-{index}", "T", 8 * GB, free, busy)


def need(number, *, options=None, **resources):
    return ResourceRequest(
        f"e-{number}-1", f"trial {number} of a@1", Resources(**resources), options or AcceleratorPolicy()
    )


def pool_of(*gpus, cpus=4.0, memory_bytes=16 * GB):
    return ResourceAllocator(Inventory((Node("here", cpus, memory_bytes, gpus),)))


def take(allocator, need_):
    grant = allocator.try_allocate(need_)
    assert isinstance(grant, Reservation), grant
    allocator.table.reserve(grant)
    return grant


def wait(allocator, need_):
    """Refuse a trial, which waits from now on."""
    refusal = allocator.try_allocate(need_)
    assert isinstance(refusal, Unschedulable), refusal
    allocator.wait(need_, refusal)
    return refusal


def test_a_machine_with_one_gpu_runs_a_trial_that_asks_for_one():
    assert take(pool_of(gpu(0)), need(1, gpus=1)).placement.accelerators == ("GPU-0",)


def test_a_second_trial_waits_for_the_only_gpu_and_knows_who_holds_it():
    allocator = pool_of(gpu(0))
    take(allocator, need(1, gpus=1))
    blocked = allocator.try_allocate(need(2, gpus=1))
    assert blocked.sentence == (
        "waits for 1 GPU, 0 free of 1: GPU 0 is held by trial 1 of a@1 (at most 1 per GPU); it is free when that ends"
    )
    allocator.table.release("e-1-1")
    allocator.table.waiting.clear()
    assert take(allocator, need(2, gpus=1)).placement.accelerators == ("GPU-0",)


def test_gpus_are_shared_only_when_all_that_share_agree():
    allocator = pool_of(gpu(0))
    shared = AcceleratorPolicy(max_trials_per_gpu=2)
    take(allocator, need(1, gpus=1, options=shared))
    assert isinstance(allocator.try_allocate(need(2, gpus=1)), Unschedulable)
    allocator.table.waiting.clear()
    take(allocator, need(3, gpus=1, options=shared))
    assert isinstance(allocator.try_allocate(need(4, gpus=1, options=shared)), Unschedulable)


def test_trials_spread_over_the_gpus():
    allocator = pool_of(gpu(0), gpu(1))
    shared = AcceleratorPolicy(max_trials_per_gpu=2)
    given_out = [take(allocator, need(n, gpus=1, options=shared)).placement.accelerators[0] for n in range(4)]
    assert sorted(given_out) == ["GPU-0", "GPU-0", "GPU-1", "GPU-1"]
    assert given_out[0] != given_out[1]


def test_a_gpu_used_by_others_is_left_alone_unless_asked_for():
    allocator = pool_of(gpu(0, busy=True))
    blocked = allocator.try_allocate(need(1, gpus=1))
    assert "used by a program outside this manager" in blocked.sentence
    allocator.table.waiting.clear()
    assert take(allocator, need(1, gpus=1, options=AcceleratorPolicy(use_active_gpu=True))).placement.accelerators == (
        "GPU-0",
    )


def test_only_the_chosen_gpus_are_given():
    allocator = pool_of(gpu(0), gpu(1), gpu(2))
    assert take(allocator, need(1, gpus=1, options=AcceleratorPolicy(gpu_indices=(2,)))).placement.accelerators == (
        "GPU-2",
    )


@pytest.mark.parametrize(
    ("resources", "options", "words"),
    [
        ({"gpus": 3}, AcceleratorPolicy(), "asks for 3 GPUs; this backend has 2 GPUs"),
        ({"gpus": 2}, AcceleratorPolicy(gpu_indices=(0,)), "of the 2 GPUs here 1 can do"),
        ({"gpus": 1, "gpu_memory_bytes": 80 * GB}, AcceleratorPolicy(), "of the 2 GPUs here 0 can do"),
        ({"cpus": 64.0}, AcceleratorPolicy(), "asks for 64 CPUs; this backend has 4 CPUs"),
        ({"memory_bytes": 64 * GB}, AcceleratorPolicy(), "asks for 64 GB memory; this backend has 16 GB memory"),
    ],
)
def test_what_can_never_be_given_is_said_at_once(resources, options, words):
    blocked = pool_of(gpu(0), gpu(1)).try_allocate(need(1, options=options, **resources))
    assert blocked.permanent
    assert words in blocked.sentence


def test_gpu_memory_promised_to_one_trial_is_not_promised_again():
    allocator = pool_of(gpu(0))
    shared = AcceleratorPolicy(max_trials_per_gpu=4)
    take(allocator, need(1, gpus=1, gpu_memory_bytes=5 * GB, options=shared))
    assert (
        "has 3 GB of 8 GB free"
        in allocator.try_allocate(need(2, gpus=1, gpu_memory_bytes=4 * GB, options=shared)).sentence
    )


def test_a_large_trial_is_not_starved_by_small_ones_behind_it():
    allocator = pool_of()
    take(allocator, need(1, cpus=2.0))
    wait(allocator, need(2, cpus=4.0))
    behind = allocator.try_allocate(need(3, cpus=1.0))
    assert behind.sentence == "waits for CPUs behind trial 2 of a@1, which comes first"
    assert isinstance(allocator.try_allocate(need(4)), Reservation)


def two_nodes(**first):
    nodes = Node("n1", 4.0, 16 * GB, **first), Node("n2", 4.0, 16 * GB, (gpu(0),))
    return ResourceAllocator(Inventory(nodes))


def nodes_and_gpus(grant):
    return [(placed.node, placed.accelerators) for placed in grant.placement.nodes]


def test_a_trial_gets_the_node_that_has_what_it_asks_for():
    allocator = two_nodes()
    assert nodes_and_gpus(take(allocator, need(1, gpus=1))) == [("n2", ("GPU-0",))]
    assert nodes_and_gpus(take(allocator, need(2))) == [("n1", ())]


def test_what_a_trial_holds_on_one_node_is_free_on_the_other():
    allocator = two_nodes()
    given_out = [nodes_and_gpus(take(allocator, need(number, cpus=3.0)))[0][0] for number in (1, 2)]
    assert sorted(given_out) == ["n1", "n2"]
    blocked = allocator.try_allocate(need(3, cpus=3.0))
    assert not blocked.permanent
    assert blocked.sentence.startswith("waits for 1 node: on n1 it waits for 3 CPUs: 1 CPU of 4 CPUs free; trial 1")
    assert "on n2 it waits for 3 CPUs" in blocked.sentence


def test_a_trial_that_waits_for_a_node_keeps_it_from_those_behind():
    allocator = two_nodes()
    for number in (1, 2):
        take(allocator, need(number, cpus=3.0))
    wait(allocator, need(3, cpus=4.0))
    assert nodes_and_gpus(take(allocator, need(5, cpus=1.0))) == [("n2", ())]
    assert "behind trial 3" in allocator.try_allocate(need(4, cpus=1.0)).sentence


def test_a_trial_of_several_nodes_gets_all_of_them_or_none():
    allocator = two_nodes()
    take(allocator, need(1, cpus=3.0))
    assert isinstance(allocator.try_allocate(need(2, cpus=2.0, nodes=2)), Unschedulable)
    allocator.table.release("e-1-1")
    allocator.table.waiting.clear()
    assert [node for node, _ in nodes_and_gpus(take(allocator, need(2, cpus=2.0, nodes=2)))] == ["n1", "n2"]
    assert allocator.try_allocate(need(3, nodes=3)).sentence == "asks for 3 nodes; this backend has 2: ask for fewer"
    assert allocator.try_allocate(need(4, gpus=1, nodes=2)).permanent


def test_what_a_node_does_not_know_of_itself_keeps_nothing_from_it():
    unknown = Accelerator(0, "GPU-a")
    allocator = ResourceAllocator(Inventory((Node("here", accelerators=(unknown,)),)))
    grant = take(allocator, need(1, cpus=64.0, memory_bytes=64 * GB, gpus=1, gpu_memory_bytes=80 * GB))
    assert nodes_and_gpus(grant) == [("here", ("GPU-a",))]


needs = st.builds(
    lambda cpus, memory, gpus, gpu_memory, share, active, indices: (
        Resources(cpus, memory and memory * GB, gpus, gpu_memory and gpu_memory * GB),
        AcceleratorPolicy(share, active, indices),
    ),
    st.sampled_from([None, 1.0, 2.0, 5.0]),
    st.sampled_from([None, 4, 9, 17]),
    st.integers(0, 3),
    st.sampled_from([None, 3, 6]),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([None, (0,), (0, 1)]),
)
devices = st.lists(st.booleans(), max_size=3)


@settings(max_examples=150)
@given(devices, st.lists(needs, min_size=2, max_size=7))
def test_a_refusal_names_exactly_what_would_free_it(busy, asked):
    """Freeing all that a refusal names lifts it; freeing all it does not name changes nothing."""
    allocator = pool_of(*(gpu(index, busy=b) for index, b in enumerate(busy)))
    for number, (resources, options) in enumerate(asked):
        need_ = ResourceRequest(f"e-{number}-1", f"<trial {number}>", resources, options)
        allocator.table.waiting.clear()
        answer = allocator.try_allocate(need_)
        if isinstance(answer, Reservation):
            allocator.table.reserve(answer)
            check_sums(allocator)
            continue
        named = {job for job, grant in allocator.table.jobs.items() if grant.request.label in answer.sentence}
        spared = copy.deepcopy(allocator)
        lifted = copy.deepcopy(allocator)
        for job in allocator.table.jobs:
            (lifted if job in named else spared).table.release(job)
        spared.table.waiting.clear()
        assert still_blocked(spared, need_, answer)
        lifted.table.waiting.clear()
        by_others = "outside this manager" in answer.sentence
        assert answer.permanent or by_others or not still_blocked(lifted, need_, answer)
        assert not answer.permanent or not named


def still_blocked(allocator, need_, answer):
    again = allocator.try_allocate(need_)
    return isinstance(again, Unschedulable) and again.resource == answer.resource


def check_sums(allocator):
    (node,) = allocator.inventory.nodes
    grants = list(allocator.table.jobs.values())
    assert sum(g.request.resources.cpus or 0 for g in grants) <= node.cpus
    assert sum(g.request.resources.memory_bytes or 0 for g in grants) <= node.memory_bytes
    for device in node.accelerators:
        holders = [g.request for g in grants if device.id in g.placement.accelerators]
        assert all(len(holders) <= h.policy.max_trials_per_gpu for h in holders)
        assert sum(h.resources.gpu_memory_bytes or 0 for h in holders) <= device.memory_bytes
        assert all(h.policy.gpu_indices is None or device.index in h.policy.gpu_indices for h in holders)
    assert all(len(set(g.placement.accelerators)) == g.request.resources.gpus for g in grants)
