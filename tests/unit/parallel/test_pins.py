"""Each pin takes effect, or a note of the plan says that it does not."""

import re
from dataclasses import fields

import pytest

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.search import Pins
from tests.example_graphs import gpt

LAYERS = 4
DEEP = gpt(layers=LAYERS, width=64, heads=4, sequence=32, batch=16, vocabulary=256)
FLAT = gpt(layers=1, width=64, heads=4, sequence=32, batch=16, vocabulary=256)
FOLLOWED = {
    "mesh": ({"mesh": (2, 2)}, lambda plan: plan.mesh.shape == (2, 2)),
    "ops": (
        {"mesh": (4,), "ops": {"*": ("batch",)}},
        lambda plan: all(len(op.loops) == 1 for op in plan.strategies.values()),
    ),
    "stages": ({"stages": 2}, lambda plan: len(plan.stages) == 2),
    "microbatches": ({"microbatches": 4}, lambda plan: plan.microbatches == 4),
    "schedule": ({"stages": 2, "schedule": "gpipe"}, lambda plan: plan.decision.schedule is Schedule.GPIPE),
    "zero": ({"mesh": (4,), "zero": 2}, lambda plan: set(plan.zero) == {ZeroLevel.GRADIENTS}),
    "recompute": ({"recompute": "full"}, lambda plan: plan.recompute == {Recompute.FULL: LAYERS}),
}
TOLD = {
    "ops": (DEEP, "data_parallel", "4xA100", {"mesh": (4,), "ops": {"*ln*": ("sequence",)}}, "Pinned splits"),
    "stages": (DEEP, "data_parallel", "4xA100", {"stages": 2}, "Pinned stages 2 have no effect: the plan has 1"),
    "schedule": (DEEP, "data_parallel", "4xA100", {"schedule": "gpipe"}, "gpipe has no effect: .* no pipeline stages"),
    "zero": (DEEP, "stand_alone", "1xA100", {"zero": 3}, "ZeRO-3 has no effect: no ranks have the same weights"),
    "recompute": (FLAT, "hybrid_parallel", "2xA100", {"recompute": "full"}, "full has no effect: no layers"),
}


def planned(graph, mode, cluster, pins):
    return api.plan(graph, None, cluster, mode, "recursive_programming", pins=pins)


def told(plan):
    return [note for note in plan.notes if "inned" in note]


def test_all_pins_are_walked():
    assert FOLLOWED.keys() == {field.name for field in fields(Pins)}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_pin_takes_effect_and_nothing_is_told(name):
    pins, is_followed = FOLLOWED[name]
    plan = planned(DEEP, "hybrid_parallel", "4xA100", pins)
    assert is_followed(plan)
    assert told(plan) == []


@pytest.mark.parametrize("name", TOLD)
def test_a_pin_without_effect_is_told(name):
    graph, mode, cluster, pins, words = TOLD[name]
    (note,) = told(planned(graph, mode, cluster, pins))
    assert re.search(words, note)
