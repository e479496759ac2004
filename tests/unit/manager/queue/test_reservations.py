"""One machine is shared out once, whatever names it; trials on several nodes get all of them, and are not starved."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources
from jupyter_autotrain.manager.queue.reservations import Reservation, ReservationTable
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable
from jupyter_autotrain.manager.resources import ResourceAllocator

GB = 1_000_000_000


def need(number, *, avoid=(), **resources):
    resources = Resources(**resources)
    return ResourceRequest(f"e-{number}-1", f"trial {number} of a@1", resources, AcceleratorPolicy(), frozenset(avoid))


def node(name, cpus=2.0, gpus=0, **facts):
    return Node(name, cpus, 16 * GB, tuple(Accelerator(n, f"GPU-{n}", "T", 8 * GB) for n in range(gpus)), **facts)


def allocator_of(*nodes, table=None, backend="lab"):
    return ResourceAllocator(Inventory(nodes), table or ReservationTable(), backend, is_remote=True)


def take(allocator, request):
    answer = allocator.try_allocate(request)
    assert isinstance(answer, Reservation), answer
    allocator.table.reserve(answer)
    return [placed.node for placed in answer.placement.nodes]


def test_two_profiles_of_one_machine_share_its_cpus_and_gpus_out_once():
    table = ReservationTable()
    local = allocator_of(node("here", gpus=1, machine_id="m1"), table=table, backend="local")
    lab = allocator_of(node("gpu1", gpus=1, machine_id="m1"), node("gpu2", machine_id="m2"), table=table)
    take(local, need(1, cpus=2.0, gpus=1))
    refusal = lab.try_allocate(need(2, gpus=1))
    assert "GPU 0 is held by trial 1 of a@1" in refusal.sentence
    assert "on gpu1" in refusal.sentence
    assert take(lab, need(3, cpus=2.0)) == ["gpu2"]
    table.release("e-1-1")
    assert take(lab, need(4, gpus=1)) == ["gpu1"]
    assert "held by trial 4" in local.try_allocate(need(5, gpus=1)).sentence


def test_machines_that_are_not_known_are_not_taken_for_one():
    table = ReservationTable()
    first, second = (allocator_of(node("h1"), table=table, backend=name) for name in ("lab", "other"))
    take(first, need(1, cpus=2.0))
    assert take(second, need(2, cpus=2.0)) == ["h1"]


def test_what_a_trial_held_before_a_restart_of_the_manager_is_held_on_the_same_machine():
    table = ReservationTable()
    placement = Placement((NodePlacement("gpu1", (), "m1"),), "lab")
    table.reserve(Reservation(need(1, cpus=2.0), placement, "lab"))
    local = allocator_of(node("here", machine_id="m1"), table=table, backend="local")
    assert "trial 1 of a@1 holds 2 CPUs" in local.try_allocate(need(2, cpus=1.0)).sentence


def test_nothing_is_placed_on_a_node_that_does_not_answer_and_the_refusal_says_why():
    allocator = allocator_of(node("h1", unavailable="h1 cannot be reached"), node("h2"))
    assert take(allocator, need(1, cpus=2.0)) == ["h2"]
    alone = allocator_of(node("h1", unavailable="h1 cannot be reached"))
    refusal = alone.try_allocate(need(2))
    assert refusal.sentence == "waits: h1 cannot be reached (on h1)"
    assert refusal.unavailable
    assert not refusal.permanent


def test_a_node_that_lost_a_trial_is_avoided_while_another_could_do_it():
    nodes = node("h1"), node("h2")
    assert take(allocator_of(*nodes), need(1, avoid=["h1"], cpus=2.0)) == ["h2"]
    busy = allocator_of(*nodes)
    take(busy, need(1, avoid=["h1"], cpus=2.0))
    assert "on h2 it waits for 2 CPUs" in busy.try_allocate(need(2, avoid=["h1"], cpus=2.0)).sentence
    assert take(allocator_of(node("h1")), need(3, avoid=["h1"])) == ["h1"]
    gone = allocator_of(node("h1"), node("h2", unavailable="h2 cannot be reached"))
    assert take(gone, need(4, avoid=["h1"])) == ["h1"]


def test_nodes_that_refuse_for_the_same_reason_are_told_once_and_of_many_the_first():
    alike = allocator_of(*[node(f"h{number}") for number in range(1, 51)])
    told = alike.try_allocate(need(1, cpus=8.0)).sentence
    assert told.startswith("asks for 1 node: on h1, h2, h3, 47 more it asks for 8 CPUs; this backend has 2 CPUs")
    assert told.count("asks for 8 CPUs") == 1
    different = allocator_of(*[node(f"h{number}", cpus=float(number)) for number in range(1, 8)])
    told = different.try_allocate(need(1, cpus=8.0)).sentence
    assert told.endswith("4 more nodes cannot either, for other reasons")


def test_a_trial_on_two_nodes_gets_both_or_none():
    allocator = allocator_of(node("h1"), node("h2"))
    take(allocator, need(1, cpus=1.0))
    refusal = allocator.try_allocate(need(2, cpus=2.0, nodes=2))
    assert "waits for 2 nodes: on h1 it waits for 2 CPUs" in refusal.sentence
    assert list(allocator.table.jobs) == ["e-1-1"]
    allocator.table.release("e-1-1")
    assert sorted(take(allocator, need(2, cpus=2.0, nodes=2))) == ["h1", "h2"]


def test_small_trials_do_not_take_the_free_node_that_a_trial_on_two_nodes_waits_on():
    allocator = allocator_of(node("h1"), node("h2"), node("h3"))
    for number in (1, 2):
        take(allocator, need(number, cpus=2.0))
    big = need(3, cpus=2.0, nodes=2)
    refusal = allocator.try_allocate(big)
    allocator.wait(big, refusal)
    assert len(refusal.machines) == 2
    small = allocator.try_allocate(need(4, cpus=1.0))
    assert isinstance(small, Unschedulable)
    assert "behind trial 3 of a@1" in small.sentence


@settings(max_examples=80)
@given(st.data())
def test_the_oldest_trial_on_several_nodes_begins_although_small_ones_keep_coming(data):
    """Small trials come without end and leave in any order; the big one begins once those before it have ended."""
    hosts = data.draw(st.integers(2, 4))
    allocator = allocator_of(*(node(f"h{n}", gpus=1) for n in range(hosts)))
    running = []
    for number in range(hosts):
        take(allocator, need(number, cpus=1.0))
        running.append(f"e-{number}-1")
    big = need(99, cpus=2.0, gpus=1, nodes=data.draw(st.integers(2, hosts)))
    before = set(running)
    for number in range(100, 140):
        allocator.table.waiting.clear()
        answer = allocator.try_allocate(big)
        if isinstance(answer, Reservation):
            return
        assert before & set(running), "those that came first have ended, yet it waits"
        allocator.wait(big, answer)
        asked = data.draw(st.sampled_from([{"cpus": 1.0}, {"gpus": 1}]))
        small = allocator.try_allocate(need(number, **asked))
        if isinstance(small, Reservation):
            allocator.table.reserve(small)
            running.append(f"e-{number}-1")
        leaves = data.draw(st.sampled_from(sorted(running)))
        running.remove(leaves)
        allocator.table.release(leaves)
    raise AssertionError("the big trial never began")
