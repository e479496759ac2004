"""Tests of what a plan shows: its graph, timeline, memory, bytes on the wire, pages."""

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.cost.collectives import axes_of
from jupyter_autotrain.parallel.cost.layout import Layouts, as_placements
from jupyter_autotrain.parallel.cost.redistribution import Redistribution
from jupyter_autotrain.parallel.cost.states import Assumptions
from jupyter_autotrain.parallel.graph.graph import TensorKind
from jupyter_autotrain.parallel.plan import Activity, Plan
from jupyter_autotrain.parallel.plan.traffic import collectives
from tests.example_graphs import gpt, llama, mlp
from tests.oracle.whole_space import plan


def tiny(layers=6, batch=16):
    return gpt(width=256, layers=layers, heads=8, sequence=128, batch=batch, vocabulary=1024)


PINS = {
    "searched": {},
    "1f1b": {"stages": 4, "microbatches": 8, "mesh": (2,), "schedule": "1f1b"},
    "interleaved": {"stages": 2, "microbatches": 4, "mesh": (4,), "schedule": "interleaved"},
    "uneven": {"stages": 4, "microbatches": 4, "mesh": (2,), "recompute": "full"},
    "sharded": {"zero": 3, "mesh": (2, 4)},
}


@pytest.fixture(scope="module", params=PINS)
def found(request):
    return plan(tiny(8), None, "8xA100", search="recursive_programming", pins=PINS[request.param] or None)


def test_a_saved_plan_comes_back_equal_and_still_answers(found):
    again = Plan.from_json(found.to_json())
    assert again == found
    assert again.decision == found.decision
    assert again.view() == found.view()
    assert str(again.explain("h.2.mlp.c_fc")) == str(found.explain("h.2.mlp.c_fc"))


def test_every_plan_compared_tells_what_a_rank_sends():
    found = plan(tiny(), None, "8xA100", simplicity=0)
    rows = {row["name"]: row for row in found.view()["candidates"]}
    weights = sum(t.size_bytes for t in found.graph.tensors if t.trainable)
    assert rows["DDP"]["sent_bytes"] == pytest.approx(2 * 7 / 8 * weights)
    assert rows["found"]["sent_bytes"] == max(sum(rank["sent_bytes"].values()) for rank in found.view()["ranks"])
    assert all((row["sent_bytes"] is None) == (row["step_s"] is None) for row in rows.values())
    assert rows["Megatron"]["sent_bytes"] > 0
    for text in (repr(found), found.to_html()):
        assert "sent bytes of a rank" in " ".join(text.split())
        assert format_memory(rows["DDP"]["sent_bytes"]) in text
    assert Plan.from_json(found.to_json()).view()["candidates"] == found.view()["candidates"]


def test_a_plan_of_an_older_format_says_so_in_three_clauses(found):
    saved = json.loads(found.to_json())
    del saved["record"]["format"]
    with pytest.raises(PlanError) as caught:
        Plan.from_json(json.dumps(saved))
    assert caught.value.found == "The plan is saved in format 1."
    assert caught.value.expected == "A plan saved by plan.to_json(), format 6."
    assert caught.value.action == "Plan again and save the new plan."


def test_a_saved_plan_that_lost_an_op_s_decision_or_whose_graph_is_damaged_is_refused(found):
    saved = json.loads(found.to_json())
    solution = saved["record"]["solution"]
    lost = solution["decision"]["ops"].pop("wte")
    with pytest.raises(PlanError, match="wte"):
        Plan.from_json(json.dumps(saved))
    solution["decision"]["ops"]["wte"] = lost
    solution["graph"]["ops"][3]["id"] = 7
    with pytest.raises(PlanError, match="id 7"):
        Plan.from_json(json.dumps(saved))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 9, "record": {}}', "null"])
def test_what_is_no_plan_is_refused_in_three_clauses(text):
    with pytest.raises(PlanError) as caught:
        Plan.from_json(text)
    assert caught.value.expected
    assert caught.value.action


def test_folded_nodes_stand_for_every_op_once(found):
    view = found.view()
    assert sum(node["count"] for node in view["nodes"]) == len(found.graph.ops)
    assert len(view["nodes"]) < len(found.graph.ops)
    assert max(group["count"] for group in view["groups"]) > 1
    numbers = {node["id"] for node in view["nodes"]}
    tensors = {tensor["id"] for tensor in view["tensors"]}
    assert all({edge["source"], edge["target"]} <= numbers and edge["tensor"] in tensors for edge in view["edges"])
    assert all(set(node["tensors"]) <= tensors for node in view["nodes"])


def test_slices_put_together_are_the_tensor(found):
    for tensor in found.view()["tensors"]:
        for dim, (whole, local) in enumerate(zip(tensor["shape"], tensor["local_shape"], strict=True)):
            assert local * prod(s["parts"] for s in tensor["splits"] if s["dim"] == dim) == whole
        assert [f"S({s['dim']})" for s in tensor["splits"]] == [p for p in tensor["placements"] if p.startswith("S")]


def test_the_view_is_plain_json_and_small(found):
    assert len(json.dumps(found.view())) < 100_000


def test_a_timeline_fills_the_step_without_holes(found):
    rows = Counter()
    for stage in range(len(found.stages)):
        row = [s for s in found.timeline() if s.stage == stage]
        assert row[0].start_s == 0.0
        assert row[-1].stop_s == pytest.approx(found.cost.step_s)
        assert all(a.stop_s == pytest.approx(b.start_s, abs=1e-12) for a, b in pairwise(row))
        for segment in row:
            rows[stage, segment.what] += segment.stop_s - segment.start_s
    busiest = max(rows[i, Activity.FORWARD] + rows[i, Activity.BACKWARD] for i in range(len(found.stages)))
    assert busiest == pytest.approx(found.cost.compute_s, rel=0.08)


@pytest.mark.parametrize(("schedule", "stages"), [("gpipe", 4), ("1f1b", 4), ("interleaved", 2)])
def test_bubbles_on_screen_are_the_predicted_ones(schedule, stages):
    found = plan(
        gpt(width=256, layers=16, heads=8, sequence=128, batch=16, vocabulary=64),
        None,
        f"{stages}xA100",
        pins={"stages": stages, "microbatches": 8, "schedule": schedule},
        search="recursive_programming",
    )
    slowest = max(found.cost.ranks, key=lambda rank: rank.micro_s).stage
    idle = sum(s.stop_s - s.start_s for s in found.timeline() if s.stage == slowest and s.what is Activity.BUBBLE)
    assert idle == pytest.approx(found.cost.bubble_s, rel=0.15)


def test_a_rank_s_memory_parts_are_its_peak_and_within_the_limit(found):
    for row in found.view()["ranks"]:
        parts = ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
        assert sum(row[part] for part in parts) == pytest.approx(row["peak_bytes"])
        assert row["peak_bytes"] <= row["limit_bytes"]


@pytest.mark.parametrize(("zero", "passes"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_data_parallel_sends_each_weight_as_often_as_its_zero_level_says(zero, passes):
    graph = mlp(width=64, layers=4, batch=16)
    ops = {op.name: ("batch",) for op in graph.ops}
    found = plan(
        graph, None, "8xA100", pins={"mesh": (8,), "zero": zero, "microbatches": 1, "ops": ops | {"*": ("batch",)}}
    )
    weights = sum(t.size_bytes for t in graph.tensors if t.kind is TensorKind.PARAMETER)
    (row,) = found.view()["ranks"]
    assert sum(row["sent_bytes"].values()) == pytest.approx(passes * weights * 7 / 8, rel=0.01)


def test_bytes_of_collectives_are_what_the_cost_model_prices():
    mesh = MeshSpec(("a", "b"), (2, 4))
    n = 1e6
    link = {"name": "all", "size": 8, "kind": "switch", "bytes_per_s": 1e9, "latency_s": 0.0}
    axes = axes_of(mesh, ClusterSpec.parse({"device": "H100", "levels": [link]}))
    codes = list(product((-2, -1, 0, 1), repeat=2))
    for source, target in product(codes, repeat=2):
        if -2 in target:
            continue
        lies = np.array([source])
        wanted = np.array([target])
        seconds = Redistribution(axes, Assumptions()).seconds(Layouts.of(lies), Layouts.of(wanted), n)[0, 0]
        found = collectives(as_placements(lies[0]), as_placements(wanted[0]), n, mesh.shape)
        assert sum(one.sent_bytes for one in found) == pytest.approx(seconds * 1e9)


class Tags(HTMLParser):
    """Checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_static_small_and_well_formed(found):
    page = found.to_html()
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    # Viewers that clean a page strip SVG elements and leave their texts: pictures are images that carry their data.
    assert not tags.seen & {"script", "link", "svg", "iframe"}
    sources = re.findall(r'<img [^>]*src="([^"]+)"', page)
    assert len(sources) >= 3
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "prefers-color-scheme:dark" in page
    assert len(page.encode()) <= 50_000


def test_names_in_a_page_are_escaped():
    found = plan(replace(tiny(2), name="<script>alert(1)</script>"), None, "2xA100", search="recursive_programming")
    assert "<script" not in found.to_html()


def test_a_plan_of_many_layers_and_stages_still_fits_its_page():
    graph = llama(width=512, layers=64, heads=8, sequence=256, batch=64, vocabulary=2048)
    pins = {"stages": 16, "microbatches": 32, "mesh": (4,), "schedule": "1f1b"}
    found = plan(graph, None, "64xH100", pins=pins, search="recursive_programming")
    assert len(found.to_html().encode()) <= 50_000


def test_text_says_time_memory_proof_and_what_else_was_weighed():
    found = plan(tiny(), None, "8xA100", simplicity=0)
    text = repr(found)
    for word in ("step", "mesh", "memory", "search", "DDP", "FSDP", "found"):
        assert word in text
    assert str(found.table()).splitlines()[1].split()[0] == "0"


def test_equal_plans_do_not_differ_and_others_say_where():
    graph = tiny()
    one = plan(graph, None, "8xA100", pins={"zero": 3}, search="recursive_programming")
    other = plan(graph, None, "8xA100", pins={"zero": 0}, search="recursive_programming")
    assert not one.diff(one)
    assert str(one.diff(one)) == "The plans do the same."
    changes = one.diff(other).changes
    assert any(change.count == 6 and "ZeRO-3" in change.before and "ZeRO" not in change.after for change in changes)
