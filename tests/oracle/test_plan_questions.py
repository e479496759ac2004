"""Tests of what a plan answers: why, what if; and what it says to bad questions."""

import html
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from jupyter_autotrain.agent.sizes import parse_bytes
from jupyter_autotrain.core.cluster_figures import memory_of
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.plan.timeline import passes_of
from jupyter_autotrain.parallel.search import StrategySpace
from jupyter_autotrain.parallel.search.solution import op_decision
from tests.example_graphs import gpt, mlp
from tests.oracle.whole_space import plan


def tiny(layers=4, batch=16):
    return gpt(width=256, layers=layers, heads=8, sequence=128, batch=batch, vocabulary=1024)


@pytest.fixture(scope="module")
def found():
    return plan(tiny(), None, "2x4xA100", search="recursive_programming")


def step_of(record):
    """Seconds of a step without a pipeline, summed over all ops anew."""
    passes = passes_of(record.decision_costs(), 0)
    return record.microbatches * sum(passes.lengths) + passes.sync_s + passes.update_s


def test_a_step_is_the_sum_over_its_ops(found):
    assert step_of(found) == pytest.approx(found.cost.step_s)


@pytest.mark.parametrize("op", ["wte", "h.0.attn.c_attn", "h.2.mlp.c_fc", "h.3.mlp.c_proj", "ln_f", "lm_head"])
def test_the_runner_up_costs_what_the_explanation_says(found, op):
    told = found.explain(op)
    rival = told.runner_up
    name = told.op
    op = found.op(name)
    names = [loop.name for loop in op.loops]
    loops = [None if loop is None else names.index(loop) for loop in rival.loops]
    changed = op_decision(op, loops, StateSharding(ZeroLevel(rival.zero)))
    decision = replace(found.decision, ops={**found.strategies, name: changed})
    other = replace(found, solution=replace(found.solution, decision=decision))
    assert step_of(other) - step_of(found) == pytest.approx(rival.seconds - told.chosen.seconds, rel=1e-6, abs=1e-12)


def test_an_explanation_names_the_runner_up_and_its_price_in_time_and_bytes(found):
    text = str(found.explain("h.1.mlp.c_fc"))
    assert "chosen" in text
    assert "runner-up" in text
    assert " ms" in text
    assert "memory" in text
    assert found.explain("h.1.mlp.c_fc").count > 1


def test_an_unknown_op_is_answered_with_near_names(found):
    with pytest.raises(PlanError, match=r"h\.1\.mlp\.c_fc"):
        found.explain("h.1.mlp.c_fcc")


def test_a_runner_up_that_does_not_fit_is_said_to():
    found = plan(tiny(), None, "8xA100", pins={"mesh": (8,), "zero": 0}, search="recursive_programming")
    tight = replace(found, solution=replace(found.solution, limit_bytes=found.cost.peak_memory_bytes))
    told = tight.explain("loss.log_softmax")
    assert any(not way.fits for way in told.ways)
    assert told.chosen.fits


def test_slower_links_or_less_memory_never_make_it_faster(found):
    exact = found.cost.step_s
    assert found.what_if(bandwidth=0.1).cost.step_s >= exact * (1 - 1e-9)
    least = found.what_if(memory=found.cost.peak_memory_bytes * 0.7)
    assert least.cost.peak_memory_bytes <= found.cost.peak_memory_bytes * 0.7
    assert least.cost.step_s >= exact * (1 - 1e-9)


def test_more_devices_are_used(found):
    many = found.what_if(devices=16)
    assert many.mesh.devices * len(many.stages) == 16
    assert many.cost.step_s < found.cost.step_s


def test_impossible_memory_says_how_much_would_do(found):
    with pytest.raises(InfeasibleError) as caught:
        found.what_if(memory="1MB")
    assert caught.value.least_memory_bytes > 1e6
    said = re.search(r"least memory that would do is (\S+ \S+) per device", str(caught.value))
    assert found.what_if(memory=said[1]).cost.peak_memory_bytes <= parse_bytes(said[1])


def test_a_question_to_48_layers_is_answered_within_seconds():
    found = plan(
        gpt(width=1024, layers=48, heads=16, sequence=512, batch=64, vocabulary=32000),
        None,
        "8x8xH100",
        search="recursive_programming",
    )
    began = time.thread_time()
    found.what_if(bandwidth=0.7)
    assert time.thread_time() - began < 10  # below 1 s on a machine that is not busy


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"cluster": "8xH10"}, "H100"),
        (
            {"cluster": {"device": "H100", "levels": [{"name": "x", "size": 8, "bytes_per_s": 0, "latency_s": 0}]}},
            "bytes_per_s = 0",
        ),
        ({"mode": "data_paralel"}, "data_parallel"),
        ({"search": "dynamic"}, "dynamic_programming"),
        ({"memory_limit": "lots"}, "80GB"),
        ({"memory_limit": "1kB"}, "least memory"),
        ({"pins": {"stage": 2}}, "stages"),
        ({"pins": {"zero": 7}}, "Zero"),
        ({"pins": {"mesh": (3,)}}, "mesh"),
        ({"pins": {"ops": {"h.0.mlp.c_fcc": ("batch",)}}}, "h.0.mlp.c_fc'"),
        ({"mode": "data_parallel", "cluster": "6xH100"}, "6 devices"),
    ],
)
def test_a_bad_question_is_answered_in_three_clauses(words, said):
    with pytest.raises(PlanError) as caught:
        plan(tiny(), None, **({"cluster": "8xH100", "search": "recursive_programming"} | words))
    assert said in str(caught.value)
    assert caught.value.found
    assert caught.value.expected
    assert caught.value.action


@pytest.mark.parametrize("model", [None, "model", dict, object()])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(PlanError, match="where a model was expected"):
        plan(model, None, "8xH100")


@pytest.mark.parametrize("reader", [0, 1])
def test_a_graph_with_a_cycle_is_answered_in_three_clauses(reader):
    graph = mlp(width=64, layers=3, batch=64)
    op = graph.ops[reader]
    later = graph.ops[3 + reader]
    looped = replace(op, inputs=(replace(op.inputs[0], tensor=later.outputs[0].tensor), *op.inputs[1:]))
    with pytest.raises(PlanError, match="no cycle") as caught:
        plan(replace(graph, ops=(*graph.ops[:reader], looped, *graph.ops[reader + 1 :])), None, "8xA100")
    assert op.name in caught.value.found
    assert caught.value.action


def test_a_batch_that_nothing_divides_is_still_planned():
    found = plan(mlp(width=64, layers=3, batch=7), None, "8xA100", space=StrategySpace(all_devices=True))
    assert found.mesh.devices == 8
    seven = plan(mlp(width=64, layers=3, batch=7), None, "8xA100", simplicity=0)
    assert seven.mesh.devices == 7
    assert seven.cost.step_s < found.cost.step_s


def test_time_up_gives_the_best_so_far_with_a_true_gap():
    whole = plan(tiny(2), None, "8xA100")
    brief = plan(tiny(2), None, "8xA100", time_limit_s=whole.search_s / 4)
    assert brief.cost.step_s * (1 - brief.gap) <= whole.cost.step_s * (1 + 1e-9) <= brief.cost.step_s * (1 + 2e-9)


@given(some.integers(1, 10**6), some.sampled_from(["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]))
@settings(max_examples=20)
def test_sizes_are_read_as_people_write_them(number, unit):
    power = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    assert parse_bytes(f"{number}{unit}") == parse_bytes(f" {number} {unit.lower()} ") == number * power
    assert parse_bytes(number * power) == number * power


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0GB", "1e9", "1 G B", float("nan"), float("inf"), -5, 0])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"^$"):
        parse_bytes(text)
    with pytest.raises(PlanError, match="Cannot read the size"):
        memory_of(text)


def test_a_pattern_that_pins_an_op_without_such_a_loop_names_the_op():
    graph = gpt(width=64, layers=2, heads=4, sequence=16, batch=8, vocabulary=128)
    with pytest.raises(PlanError, match=r"'\*' has no loop 'head' to split, only .* \(op '") as caught:
        plan(graph, None, "2xA100", pins={"mesh": (2,), "ops": {"*": ("head",)}}, search="recursive_programming")
    assert len(str(caught.value).splitlines()) <= 6


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_texts_have_at_most_88_columns_and_one_unit_of_memory(share):
    graph = gpt(width=512, layers=12, heads=8, sequence=256, batch=32, vocabulary=32000)
    whole = plan(graph, None, "2x4xH100", simplicity=share)
    staged = plan(whole.graph, None, "2x4xH100", pins={"stages": 2, "mesh": (2, 2)}, search="recursive_programming")
    told = [str(found.explain("h.2.mlp.c_fc")) for found in (whole, staged)]
    tables = map(str, (whole.table(), staged.table(), whole.diff(staged)))
    for text in (repr(whole), repr(staged), *tables, *told):
        assert max(map(len, text.splitlines())) <= 88
        assert not re.search(r"\d [kMGT]?B\b", text)
    assert "no stages" in str(whole.diff(staged))


def test_explanations_and_differences_are_tables_in_a_notebook(found):
    told = found.explain("h.1.mlp.c_fc")
    page = told._repr_html_()
    assert page.count("<tr class=found>") == 1
    assert page.count("<td") == 8 * (page.count("<tr") - 1)
    assert html.escape(told.why) in page
    assert found.table()._repr_html_().count("<tr>") == 1 + len(found.stages)
    other = plan(tiny(), None, "2x4xA100", pins={"zero": 3, "recompute": "full"}, search="recursive_programming")
    assert found.diff(other)._repr_html_().count("<tr>") == 1 + len(found.diff(other).changes)
    assert found.diff(found)._repr_html_() == "<p>The plans do the same.</p>"
