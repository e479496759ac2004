"""Optimizer states and embedding tables in the host's memory."""

import ast
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.errors import InfeasibleError
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.cost.model import CostModel, Settings
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.plan import Plan
from jupyter_autotrain.parallel.search import StrategySpace
from tests.example_graphs import gpt
from tests.oracle.whole_space import plan

WORDS = 200_000
WIDTH = 256
ROWS = 16 * 128
GRAPH = gpt(width=WIDTH, layers=4, heads=8, sequence=128, batch=16, vocabulary=WORDS)
SMALL = StrategySpace(max_axes=1, stages=(1,))
ON_DEVICE = StateSharding(ZeroLevel.NONE)
ON_HOST = StateSharding(ZeroLevel.NONE, offload=True, host_table=True)


@cache
def planned(memory=None, *, offload):
    return plan(GRAPH, None, "8xA100", memory_limit=memory, space=SMALL, offload=offload)


@pytest.fixture(scope="module")
def tight():
    """Less memory than any plan without the host needs."""
    with pytest.raises(InfeasibleError) as refused:
        planned(1e6, offload=False)
    return planned(refused.value.least_memory_bytes * 0.6, offload=True)


def states_of(op, state_shardings, shape=(8,)):
    mesh = MeshSpec(("a",) * len(shape), shape)
    model = CostModel(GRAPH, ClusterSpec.parse("8xA100"), mesh, settings=Settings(state_shardings=state_shardings))
    return model, model.op(next(o.id for o in GRAPH.ops if o.name == op)).states


def test_a_table_on_the_host_leaves_nothing_on_the_device():
    _, states = states_of("wte", (ON_DEVICE, ON_HOST), ())
    assert states.state_bytes[0] == 16 * WORDS * WIDTH
    assert states.state_bytes[1] == 0


def test_its_rows_travel_up_the_link_and_their_gradients_down():
    model, states = states_of("wte", (ON_HOST,), ())
    assert states.micro_s[0, 0] == pytest.approx(2 * ROWS * WIDTH * 2 / model.roofline.device.host_bytes_per_s)
    assert states.step_s[0, 0] == 0
    assert states.update_s[0, 0] > 0


def test_replicas_gather_the_gradients_of_each_others_rows():
    model, states = states_of("wte", (ON_HOST,))
    table = model.op(0).table[:, 0]
    along_batch = int(np.flatnonzero(table == [loop.role for loop in GRAPH.ops[0].loops].index("batch"))[0])
    alone = 2 * ROWS / 8 * WIDTH * 2 / model.roofline.device.host_bytes_per_s
    assert states.micro_s[0, along_batch] > alone


def test_other_weights_keep_to_the_optimizer_on_the_host():
    _, states = states_of("h.0.mlp.c_fc", (StateSharding(ZeroLevel.NONE, offload=True), ON_HOST))
    assert (states.state_bytes[0] == states.state_bytes[1]).all()
    assert (states.update_s[0] == states.update_s[1]).all()


def test_a_table_that_also_makes_the_logits_stays_on_the_device():
    wte = next(t.id for t in GRAPH.tensors if t.name == "wte.weight")
    head = next(t.id for t in GRAPH.tensors if t.name == "lm_head.weight")
    tied = replace(GRAPH, tied=((wte, head),))
    found = plan(tied, None, "8xA100", space=SMALL, offload=True)
    assert "table" not in found.offloaded


def test_the_host_never_makes_a_plan_slower_where_memory_binds():
    free = planned(offload=False)
    for share in (0.8, 0.7):
        memory = free.cost.peak_memory_bytes * share
        without = planned(memory, offload=False)
        with_host = planned(memory, offload=True)
        assert with_host.cost.step_s <= without.cost.step_s * (1 + 1e-9)
        assert with_host.cost.peak_memory_bytes <= memory


def test_the_host_makes_room_for_what_fits_no_other_way(tight):
    assert tight.offloaded["table"] == WORDS * WIDTH
    assert tight.strategies["wte"].states.host_table
    assert tight.cost.peak_memory_bytes <= tight.request.limits.memory_bytes


def test_nothing_is_on_the_host_unless_asked_for():
    assert planned(offload=False).offloaded == {}


def test_a_plan_tells_what_is_on_the_host(tight):
    assert "on the host" in repr(tight)
    assert "table on host" in str(tight.explain("wte"))
    node = next(node for node in tight.view()["nodes"] if node["op"] == "wte")
    assert (node["offload"], node["host_table"]) == (True, True)
    assert Plan.from_json(tight.to_json()).offloaded == tight.offloaded
    assert "table on host" in str(planned(offload=False).diff(tight))


def test_its_code_keeps_the_table_and_its_optimizer_there(tight):
    code = tight.to_code()
    ast.parse(code)
    assert "tables = [model.wte]" in code
    assert "SparseAdam" in code


def test_what_ranks_send_for_a_table_are_rows():
    pins = {"mesh": (8,), "ops": {"wte": ("batch",)}}
    found = plan(GRAPH, None, "8xA100", space=SMALL, pins=pins, offload=True)
    assert found.strategies["wte"].states.host_table
    (node,) = (node for node in found.view()["nodes"] if node["op"] == "wte")
    assert sum(move["sent_bytes"] for move in node["syncs"]) == pytest.approx(7 * ROWS / 8 * WIDTH * 2)
