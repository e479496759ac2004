"""A trial with `adjacent:` gets devices, and nodes, that are neighbours by their links, or waits for them."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.devices import Link, LinkKind
from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import NodePlacement, Resources
from jupyter_autotrain.manager.queue.adjacency import adjacent_sets
from jupyter_autotrain.manager.queue.node_allocator import NodeAllocator
from jupyter_autotrain.manager.queue.reservations import Reservation
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable
from jupyter_autotrain.manager.resources import ResourceAllocator

RING = LinkKind.RING
MESH = LinkKind.MESH
TORUS = LinkKind.TORUS
SWITCH = LinkKind.SWITCH


def need(number: int, gpus: int, adjacent: str | None = "ring", nodes: int = 1) -> ResourceRequest:
    resources = Resources(gpus=gpus, adjacent=adjacent, nodes=nodes)
    return ResourceRequest(f"e-{number}-1", f"trial {number} of a@1", resources, AcceleratorPolicy())


def node_of(count: int, kind: LinkKind | None = None, *, name: str = "a", model: str = "T") -> Node:
    gpus = tuple(Accelerator(index, f"{name}-{index}", model) for index in range(count))
    return Node(name, accelerators=gpus, link=None if kind is None else Link(kind, 1e9, 1e-6))


def pool_of(*nodes: Node) -> ResourceAllocator:
    return ResourceAllocator(Inventory(nodes), is_remote=len(nodes) > 1)


def take(pool: ResourceAllocator, request: ResourceRequest) -> list[tuple[str, set[int]]]:
    """Reserve what a trial gets; gives it by node."""
    answer = pool.try_allocate(request)
    assert isinstance(answer, Reservation), answer
    pool.table.reserve(answer)
    return [(placed.node, devices_of(placed)) for placed in answer.placement.nodes]


def devices_of(placed: NodePlacement) -> set[int]:
    return {int(name.rpartition("-")[2]) for name in placed.accelerators}


def refusal(pool: ResourceAllocator, request: ResourceRequest) -> Unschedulable:
    answer = pool.try_allocate(request)
    assert isinstance(answer, Unschedulable), answer
    return answer


def test_on_a_ring_a_trial_gets_an_arc_also_over_the_ends_numbers() -> None:
    pool = pool_of(node_of(8, RING))
    take(pool, need(1, 3))
    assert take(pool, need(2, 3)) in ([("a", {3, 4, 5})], [("a", {5, 6, 7})])
    pool = pool_of(node_of(8, RING))
    for number, held in enumerate(([2], [3], [4], [5]), 1):
        policy = AcceleratorPolicy(gpu_indices=tuple(held))
        take(pool, ResourceRequest(f"e-{number}-1", f"trial {number}", Resources(gpus=1), policy))
    assert take(pool, need(9, 4)) == [("a", {6, 7, 0, 1})]


def test_free_devices_that_are_apart_are_not_given_and_the_refusal_says_who_is_between() -> None:
    pool = pool_of(node_of(4, RING))
    for number, index in ((1, 0), (2, 2)):
        policy = AcceleratorPolicy(gpu_indices=(index,))
        take(pool, ResourceRequest(f"e-{number}-1", f"trial {number} of a@1", Resources(gpus=1), policy))
    assert refusal(pool, need(3, 2)).sentence == (
        "waits for 2 GPUs side by side (ring), 2 free of 4: GPU 0 is held by trial 1 of a@1 (at most 1 per GPU); "
        "it is free when that ends; GPU 2 is held by trial 2 of a@1 (at most 1 per GPU); it is free when that ends"
    )
    assert take(pool, need(4, 2, adjacent=None)) == [("a", {1, 3})]


def test_a_trial_takes_the_gap_that_it_fills_and_leaves_the_long_one_whole() -> None:
    pool = pool_of(node_of(8, RING))
    for number, index in ((1, 0), (2, 3)):
        policy = AcceleratorPolicy(gpu_indices=(index,))
        take(pool, ResourceRequest(f"e-{number}-1", f"trial {number}", Resources(gpus=1), policy))
    assert take(pool, need(3, 2)) == [("a", {1, 2})]
    assert take(pool, need(4, 4)) == [("a", {4, 5, 6, 7})]


def test_in_a_mesh_a_trial_gets_a_rectangle_and_for_a_ring_one_that_a_cycle_runs_through() -> None:
    rows_of_four = pool_of(node_of(8, MESH))
    assert take(rows_of_four, need(1, 4, "ring"))[0][1] in ({0, 1, 4, 5}, {2, 3, 6, 7})
    assert refusal(pool_of(node_of(8, MESH)), need(2, 3, "ring")).permanent
    assert take(pool_of(node_of(8, MESH)), need(3, 3, "mesh"))[0][1] in ({0, 1, 2}, {1, 2, 3}, {4, 5, 6}, {5, 6, 7})


def test_where_a_switch_links_all_any_devices_will_do() -> None:
    pool = pool_of(node_of(4, SWITCH))
    for number, index in ((1, 0), (2, 2)):
        policy = AcceleratorPolicy(gpu_indices=(index,))
        take(pool, ResourceRequest(f"e-{number}-1", f"trial {number}", Resources(gpus=1), policy))
    assert take(pool, need(3, 2)) == [("a", {1, 3})]


def test_more_neighbours_than_there_can_be_are_refused_for_good_with_what_to_do() -> None:
    answer = refusal(pool_of(node_of(8, MESH)), need(1, 5, "mesh"))
    assert answer.permanent
    assert answer.sentence == (
        "asks for 5 GPUs side by side (mesh); here no 5 are: ask for fewer, or remove `adjacent`"
    )


def test_the_data_sheet_tells_how_devices_and_chassis_of_a_pod_are_linked() -> None:
    pool = pool_of(*(node_of(8, name=f"n{number}", model="NNP-T1000") for number in range(4)))
    take(pool, ResourceRequest("e-1-1", "trial 1", Resources(gpus=8), AcceleratorPolicy(), prefer=frozenset({"n1"})))
    given = take(pool, need(2, 8, nodes=2))
    assert {name for name, _ in given} in ({"n2", "n3"}, {"n3", "n0"})
    answer = refusal(pool, need(3, 8, nodes=2))
    assert not answer.permanent
    assert "waits for 2 nodes" in answer.sentence


def test_nodes_of_a_ring_that_are_apart_wait_until_the_one_between_is_free() -> None:
    pool = pool_of(*(node_of(8, name=f"n{number}", model="NNP-T1000") for number in range(4)))
    for number, name in ((1, "n0"), (2, "n2")):
        wanted = frozenset({name})
        take(
            pool,
            ResourceRequest(f"e-{number}-1", f"trial {number}", Resources(gpus=8), AcceleratorPolicy(), prefer=wanted),
        )
    answer = refusal(pool, need(3, 8, nodes=2))
    assert "trial 1" in answer.sentence
    assert len(answer.machines) == 2
    pool.table.release("e-1-1")
    assert {name for name, _ in take(pool, need(3, 8, nodes=2))} in ({"n0", "n1"}, {"n0", "n3"})


def is_connected(chosen: frozenset[int], links: set[frozenset[int]]) -> bool:
    seen = {min(chosen)}
    for _ in chosen:
        seen |= {other for other in chosen for one in seen if frozenset({one, other}) in links}
    return seen == chosen


def links_of(count: int, kind: LinkKind) -> set[frozenset[int]]:
    """Return the links of a ring, or of the grid that is as square as the count allows."""
    if kind is RING:
        return {frozenset({one, (one + 1) % count}) for one in range(count)}
    rows = max(rows for rows in range(1, count + 1) if count % rows == 0 and rows * rows <= count)
    columns = count // rows
    found = set()
    for one, other in combinations(range(count), 2):
        down = abs(one // columns - other // columns)
        across = abs(one % columns - other % columns)
        if kind is TORUS:
            down = min(down, rows - down)
            across = min(across, columns - across)
        if down + across == 1:
            found.add(frozenset({one, other}))
    return found


@pytest.mark.parametrize("kind", [RING, MESH, TORUS])
@settings(max_examples=40, deadline=None)
@given(count=st.integers(2, 16), data=st.data())
def test_every_set_is_joined_by_links_of_its_own(kind: LinkKind, count: int, data: st.DataObject) -> None:
    asked = data.draw(st.integers(2, count))
    links = links_of(count, kind)
    for chosen in adjacent_sets(count, asked, kind, "mesh") or []:
        assert len(chosen) == asked
        assert is_connected(chosen, links)


def test_a_ring_of_a_grid_has_a_cycle_through_all_its_devices() -> None:
    for kind in (MESH, TORUS):
        for chosen in adjacent_sets(8, 4, kind, "ring") or []:
            first, *others = sorted(chosen)
            assert any(is_cycle([first, *order], links_of(8, kind)) for order in permutations(others)), chosen


def is_cycle(order: list[int], links: set[frozenset[int]]) -> bool:
    return all(frozenset(pair) in links for pair in pairwise([*order, order[0]]))


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(2, 4), min_size=1, max_size=12))
def test_devices_given_at_once_are_arcs_and_no_device_is_given_twice(sizes: list[int]) -> None:
    pool = pool_of(node_of(8, RING), node_of(8, RING, name="b"))
    held: set[tuple[str, int]] = set()
    for number, size in enumerate(sizes, 1):
        answer = pool.try_allocate(need(number, size))
        if isinstance(answer, Unschedulable):
            continue
        pool.table.reserve(answer)
        (placed,) = answer.placement.nodes
        devices = devices_of(placed)
        assert is_connected(frozenset(devices), links_of(8, RING))
        assert not held & {(placed.node, device) for device in devices}
        held |= {(placed.node, device) for device in devices}


def test_the_capacity_counts_sets_of_neighbours() -> None:
    assert NodeAllocator(node_of(8, RING)).capacity(need(1, 3)) == 2
    assert NodeAllocator(node_of(8, MESH)).capacity(need(1, 4, "ring")) == 2
