"""The search among plans that run: it reads the table of choices, is exact, and says where nothing that runs fits."""

from dataclasses import replace
from itertools import product

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel import choices
from jupyter_autotrain.parallel.api import plan
from jupyter_autotrain.parallel.choices import Support
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.plan import Megatron
from jupyter_autotrain.parallel.search import Method, SearchLimits, SearchRequest, solve
from tests.example_graphs import gpt, llama, mlp
from tests.matrices import long_besides

GPT = prepare(gpt(width=1024, layers=6, heads=16, sequence=512, batch=32, vocabulary=32000))
BILLIONS = {"width": 4096, "layers": 4, "heads": 32, "sequence": 1024, "vocabulary": 32000, "hidden": 11008}
LLAMA = prepare(llama(batch=16, **BILLIONS))
CASES = {
    "gpt": (GPT, "8xA100", None),
    "gpt, little memory": (GPT, "8xA100", "600MB"),
    "gpt, two chassis": (GPT, "2x4xH100", None),
    "llama, little memory": (LLAMA, "4xA100-40GB", "6GB"),
    "mlp": (prepare(mlp(width=2048, layers=6, batch=64)), "8xV100", None),
    "a batch that does not divide": (GPT, "3xA100", None),
}
SEARCHES = ("dynamic_programming", "recursive_programming")
ANSWERED_BY_DEFAULT = (
    ("gpt, little memory", "recursive_programming"),
    ("mlp", "dynamic_programming"),
    ("a batch that does not divide", "dynamic_programming"),
)
INSTANT = {"search": "recursive_programming"}


def marked(support, prefixes):
    """Return the table of choices with other support of some rows."""
    return tuple(
        replace(choice, support=support) if choice.name.startswith(prefixes) else choice for choice in choices.CHOICES
    )


@pytest.fixture
def data_axes_alone(monkeypatch):
    """As if neither a tensor axis nor stages ran."""
    monkeypatch.setattr(choices, "CHOICES", marked(Support.EXPORTED, ("tensor axis", "pipeline")))


@pytest.mark.parametrize("case", long_besides(ANSWERED_BY_DEFAULT, product(CASES, SEARCHES)), ids=", ".join)
@pytest.mark.parametrize("simplicity", long_besides([None], [None, 0.0]))
def test_an_answer_runs(case, simplicity):
    case, search = case
    graph, cluster, memory = CASES[case]
    found = plan(graph, None, cluster, search=search, memory_limit=memory, simplicity=simplicity)
    assert found.beyond == ()
    assert found.recipe().ranks == found.cluster.devices
    assert found.solution.none_runs == ""
    assert found.among == " of those that run"


@pytest.mark.parametrize("case", long_besides(["gpt, little memory"], CASES))
def test_no_plan_that_runs_is_faster(case):
    """Against all pinned plans on all devices: each level, microbatches and recompute mode."""
    graph, cluster, memory = CASES[case]
    found = plan(graph, None, cluster, memory_limit=memory, simplicity=0.0)
    words = {"mode": "data_parallel", "search": "recursive_programming", "memory_limit": memory}
    for zero, mode, count in product(ZeroLevel, (Recompute.NONE, Recompute.FULL), (1, 4)):
        pins = {"zero": zero, "recompute": mode, "microbatches": count}
        try:
            other = plan(graph, None, cluster, pins=pins, **words)
        except PlanError:
            continue
        assert found.cost.step_s <= other.cost.step_s * (1 + 1e-9)
        assert found.solution.bound_s <= other.cost.step_s * (1 + 1e-9)


@pytest.mark.parametrize("case", long_besides(["mlp"], ["mlp", "gpt, little memory"]))
def test_more_choices_never_give_a_slower_best(case):
    graph, cluster, memory = CASES[case]
    words = {"memory_limit": memory, "simplicity": 0.0, "proof_s": 0.5}
    runs = plan(graph, None, cluster, **words)
    every = plan(graph, None, cluster, execute=False, **words)
    assert every.cost.step_s <= runs.cost.step_s * (1 + 1e-9)


def test_what_becomes_executed_is_chosen_without_a_change_of_the_search(monkeypatch):
    monkeypatch.setattr(choices, "CHOICES", marked(Support.EXECUTED, ""))
    limits = SearchLimits(memory_bytes=5e9)
    request = SearchRequest(search=Method.RECURSIVE_PROGRAMMING, limits=limits, simplicity=0.05, execute=True)
    found = solve(LLAMA, ClusterSpec.parse("4xA100-40GB"), request)
    assert found.none_runs == ""
    assert "tensor" in found.name


def test_what_is_no_longer_executed_is_not_chosen(monkeypatch):
    graph, cluster, _ = CASES["mlp"]
    chosen = plan(graph, None, cluster)
    names = [choice.name for choice, _ in choices.choices_in(chosen.graph, chosen.decision)]
    level = next(name for name in names if name.startswith(("DDP", "ZeRO")))
    monkeypatch.setattr(choices, "CHOICES", marked(Support.EXPORTED, level))
    other = plan(graph, None, cluster)
    assert other.beyond == ()
    assert level not in {choice.name for choice, _ in choices.choices_in(other.graph, other.decision)}


@pytest.mark.usefixtures("data_axes_alone")
def test_where_nothing_that_runs_fits_the_plan_says_so_with_what_would_and_is_exported_only():
    found = plan(LLAMA, None, "4xA100-40GB", memory_limit="5GB", **INSTANT)
    said = " ".join(found.notes)
    assert found.beyond
    assert "No plan that runs fits 4.66 GiB per device on 4xA100-40GB." in said
    assert "What would fit: " in said
    assert "offload=True, exported only (" in said
    assert "Exported only: to_code() has it, apply() does not run " in said
    assert "of those that run" not in repr(found)
    with pytest.raises(PlanError, match="The plan has what is not executed"):
        found.recipe()


@pytest.mark.usefixtures("data_axes_alone")
def test_what_is_asked_for_is_shown_with_the_word():
    asked = plan(GPT, None, "8xA100", pins=Megatron(tensor=2, pipeline=2, microbatches=2), **INSTANT)
    assert "pipeline 2" in asked.solution.name
    rows = {row["name"]: row["what"] for row in asked.view()["candidates"]}
    assert rows["found"].endswith(", exported only")
    assert any(note.startswith("Exported only: ") for note in asked.notes)
    assert "of those that run" not in repr(asked)


@pytest.mark.usefixtures("data_axes_alone")
def test_recompute_is_named_where_it_would_do():
    pins = {"recompute": "none", "mesh": (4,)}
    found = plan(LLAMA, None, "4xA100-40GB", memory_limit="6GB", pins=pins, **INSTANT)
    assert "full recompute (" in found.solution.none_runs
    assert plan(LLAMA, None, "4xA100-40GB", memory_limit="6GB", pins={"mesh": (4,)}, **INSTANT).beyond == ()
