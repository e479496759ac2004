"""Experts over one axis and layers over another: refused with what runs in its place, and never an answer."""

import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel import api
from tests.parallel import training


@pytest.fixture(scope="module")
def graph():
    words = {"mode": "stand_alone", "search": "recursive_programming"}
    return api.plan(training.network("mixtral"), training.example("mixtral"), "1xA100", **words).graph


def test_both_are_refused_with_the_mesh_that_runs(graph):
    plan = api.plan(graph, None, "4xA100", mesh={"tp": 2, "ep": 2})
    with pytest.raises(PlanError, match=re.escape("run beside samples alone (mesh={'dp': ..., 'ep': ...})")):
        plan.recipe()


def test_the_mesh_that_is_named_runs(graph):
    plan = api.plan(graph, None, "4xA100", mesh={"dp": 2, "ep": 2})
    assert plan.beyond == ()
    assert plan.recipe().ranks == 4


def test_an_answer_has_one_of_the_two_at_most(graph):
    free = api.plan(graph, None, "8xA100")
    tight = api.plan(graph, None, "8xA100", memory_limit=0.7 * free.cost.peak_memory_bytes)
    for plan in (free, tight):
        assert plan.beyond == ()
        assert not {"tensor", "expert"} <= set(plan.mesh.axes)
