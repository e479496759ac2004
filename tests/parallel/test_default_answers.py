"""Default answers run: whatever the model, the number of devices and their memory, `apply` takes the plan as it is."""

from functools import cache
from math import prod

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils.data import DataLoader

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.plan import Degrees
from tests.matrices import long_besides
from tests.parallel import staging, training

COUNTS = (2, 3, 4)
BATCHES = {2: 16, 3: 12, 4: 16}
TIGHT = 0.6  # of what plain data parallelism takes
CASES = [(model, count, tight) for model in training.TENSOR_MODELS for count in COUNTS for tight in (False, True)]
HELD = [*((model, 4, True) for model in training.TENSOR_MODELS), ("gpt2", 3, True), ("llama", 2, False)]
RUN = [("llama", 2, True), ("t5", 2, True)]
DEGREES = [{"data": 2}, {"tensor": 2}, {"data": 2, "tensor": 2}, {"pipeline": 2, "tensor": 2}]
LOSS = 1e-5


@cache
def graph_of(model, batch):
    """Return a traced model, by a plan for one device."""
    inputs = next(iter(DataLoader(training.Samples(model), batch_size=batch)))
    return api.plan(training.TENSOR_MODELS[model](), inputs, "1xA100", mode="stand_alone").graph


@cache
def answered(model, count, tight, batch=None):
    graph = graph_of(model, batch or BATCHES[count])
    limit = None
    if tight:
        replicated = {"mode": "data_parallel", "search": "recursive_programming", "pins": {"microbatches": 1}}
        alike = count if graph.unsplittable_reason == "" else 1
        limit = TIGHT * api.plan(graph, None, f"{alike}xA100", **replicated).cost.peak_memory_bytes
    return api.plan(graph, None, f"{count}xA100", memory_limit=limit)


def named(case):
    model, count, tight = case
    return f"{model}-{count}-{'tight' if tight else 'free'}"


@pytest.mark.parametrize("case", long_besides(HELD, CASES), ids=named)
def test_a_default_answer_has_a_recipe(case):
    plan = answered(*case)
    assert plan.beyond == ()
    assert plan.recipe().ranks == plan.cluster.devices
    assert plan.solution.none_runs == ""


@pytest.mark.parametrize("degrees", DEGREES, ids=str)
def test_a_plan_of_given_degrees_runs(degrees):
    plan = api.plan(graph_of("gpt2", 16), None, f"{prod(degrees.values())}xA100", pins=Degrees(**degrees))
    assert plan.beyond == ()
    assert plan.recipe().ranks == plan.cluster.devices


@pytest.mark.parametrize("case", long_besides(RUN, CASES), ids=named)
def test_a_default_answer_trains_as_one_process(ranks, case):
    model, count, tight = case
    plan = answered(model, count, tight, training.BATCH)
    processes = plan.cluster.devices
    parts = processes if model == "cnn" else 1  # batch statistics are of each rank's own samples
    alone = ranks.run(1, training.train, model=model, statistics_over=parts)[0]
    loop = staging.train if len(plan.decision.stages) > 1 else training.train
    found = ranks.run(processes, loop, model=model, plan=plan.to_json())[0]
    assert found.losses == pytest.approx(alone.losses, abs=LOSS)
