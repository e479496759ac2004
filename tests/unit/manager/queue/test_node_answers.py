"""Nodes that are asked once for trials alike answer as if each were asked anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.core.inventory import Accelerator, AcceleratorPolicy, Inventory, Node
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.manager.queue.node_allocator import NodeAllocator
from jupyter_autotrain.manager.queue.reservations import Reservation, ReservationTable
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest
from jupyter_autotrain.manager.resources import ResourceAllocator


def node(number: int) -> Node:
    gpus = tuple(Accelerator(gpu, f"n{number}/{gpu}") for gpu in range(2))
    return Node(f"n{number}", 4.0, None, gpus, machine_id=f"m{number % 3}")


NODES = tuple(map(node, range(4)))


def request(number: int, cpus: float, gpus: int) -> ResourceRequest:
    return ResourceRequest(f"e-{number}-1", f"trial {number}", Resources(cpus, gpus=gpus), AcceleratorPolicy())


steps = st.tuples(st.sampled_from(["lab", "other"]), st.sampled_from([1.0, 2.0]), st.integers(0, 2), st.booleans())


@given(st.lists(steps, min_size=1, max_size=20))
def test_an_answer_that_was_kept_is_the_one_that_the_node_would_give_now(asked):
    table = ReservationTable()
    backends = {name: ResourceAllocator(Inventory(NODES), table, name) for name in ("lab", "other")}
    held: list[str] = []
    for number, (name, cpus, gpus, ends_one) in enumerate(asked):
        allocator = backends[name]
        one = request(number, cpus, gpus)
        for node in NODES:
            fresh = NodeAllocator(node, table.on(name, node)).try_allocate(one)
            assert allocator._answers.ask(node, one, is_only=False).answer == fresh
        answer = allocator.try_allocate(one)
        if isinstance(answer, Reservation):
            table.reserve(answer)
            held.append(one.job_id)
        if ends_one and held:
            table.release(held.pop(0))
