"""The simplest plan within a share of the best: its order, that it is monotone, what plans cost and are called."""

import re
from dataclasses import astuple, fields, replace
from functools import cache
from time import monotonic

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.plan.traffic import most_sent_bytes
from jupyter_autotrain.parallel.search import SearchLimits, SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.naming import ops_apart, plan_name
from jupyter_autotrain.parallel.search.outer.branch_and_bound import solve_candidate
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.outer.simplest import Simplicity, default_share, simplest
from jupyter_autotrain.parallel.search.outer.uniform import HYBRID, Split, UniformPlans
from tests.example_graphs import gpt, llama, mlp
from tests.matrices import long_besides
from tests.oracle.whole_space import plan

GPT = prepare(gpt(width=1024, layers=6, heads=16, sequence=512, batch=32, vocabulary=32000))
BILLIONS = {"width": 4096, "layers": 8, "heads": 32, "sequence": 2048, "vocabulary": 32000, "hidden": 11008}
LLAMA = prepare(llama(batch=16, **BILLIONS))
SHARES = (0.0, 0.03, 0.1, 0.5)
MODELS = {"gpt": GPT, "llama": LLAMA, "mlp": prepare(mlp(width=2048, layers=6, batch=64))}
CASES = {
    "gpt": ("gpt", "8xA100", None),
    "gpt, little memory": ("gpt", "8xA100", 0.6e9),
    "gpt, two chassis": ("gpt", "2x4xH100", None),
    "llama": ("llama", "2x4xH100", None),
    "llama, little memory": ("llama", "8xA100-40GB", 8e9),
    "mlp": ("mlp", "8xV100", None),
}


@cache
def searched(model, cluster, memory_bytes=None):
    """Return the uniform plans, the best, and everything seen, of a search that ran to its end."""
    request = SearchRequest(limits=SearchLimits(memory_bytes, proof_s=0.5), baselines=False)
    progress = ProgressMonitor(monotonic, monotonic())
    run = SearchRun.of(MODELS[model], ClusterSpec.parse(cluster), request, progress)
    run.first_plans()
    run.search.run(run.candidates)
    return UniformPlans(run.search.context, run.space), run.search.best, run.search.outcomes


@pytest.fixture(scope="module", params=long_besides(["gpt, little memory", "llama"], CASES))
def case(request):
    return searched(*CASES[request.param])


def test_what_comes_first_in_the_order_counts_first():
    simple = Simplicity(0, 0, 0, 0, False, 0, False, 0, 1e9, 0.1, "a")
    for place, field in enumerate(fields(Simplicity)):
        more = "b" if field.name == "name" else astuple(simple)[place] + 1
        earlier = replace(simple, **{field.name: more})
        later = {f.name: -1 for f in fields(Simplicity)[place + 1 :] if f.name != "name"}
        assert simple < replace(earlier, **later), field.name


def test_no_two_plans_are_equally_simple(case):
    uniform, _, _ = case
    for layout in uniform.layouts():
        plans = [plan for candidate in uniform.candidates(layout) for plan in uniform.priced(layout, candidate)]
        assert len({Simplicity.of_uniform(plan, 1e12) for plan in plans}) == len(plans)


def test_more_tolerance_never_gives_a_more_complex_plan(case):
    uniform, best, seen = case
    answers = [best, *(simplest(uniform, best, seen, share) for share in SHARES[1:])]
    places = [Simplicity.of(answer, max(uniform.context.limits(answer.candidate))) for answer in answers]
    assert all(answer.step_s <= best.step_s * (1 + share) for answer, share in zip(answers, SHARES, strict=True))
    structure = [astuple(place)[:8] for place in places]
    assert structure == sorted(structure, reverse=True)


@pytest.mark.parametrize("case", long_besides(["gpt"], CASES))
def test_no_tolerance_gives_the_best_plan(case):
    model, cluster, _ = CASES[case]
    graph = MODELS[model]
    best = solve(graph, cluster)
    none = plan(graph, None, cluster, simplicity=0)
    assert none.cost.step_s == pytest.approx(best.cost.step_s, rel=1e-12)
    assert none.solution.best is None


def test_uniform_plans_cost_what_the_solvers_say(case):
    uniform, _, _ = case
    for layout in uniform.layouts():
        for candidate in list(uniform.candidates(layout))[:2]:
            priced = uniform.priced(layout, candidate)[-1]
            narrowed = uniform.narrowed(layout)
            settings = replace(narrowed.settings, state_shardings=(priced.states,))
            limited = replace(narrowed, settings=settings, modes=(priced.mode,), limit_bytes=1e15)
            solved = solve_candidate(limited, candidate).outcome
            outcome = uniform.outcome(priced)
            assert (outcome.step_s, outcome.bytes) == pytest.approx((priced.step_s, priced.bytes), rel=1e-9)
            if candidate.stages == 1:  # else the solvers share the layers out unevenly
                assert (priced.step_s, priced.bytes) == pytest.approx((solved.step_s, solved.bytes), rel=1e-9)
            assert priced.step_s >= solved.step_s * (1 - 1e-9)


def test_uniform_plans_have_nothing_apart(case):
    uniform, _, _ = case
    layouts = [layout for layout in uniform.layouts() if layout.split in {Split.NONE, Split.HYBRID, Split.TENSOR}]
    for layout in layouts:
        candidate = next(uniform.candidates(layout))
        outcome = uniform.outcome(uniform.priced(layout, candidate)[0])
        place = Simplicity.of(outcome, 1e12)
        assert (place.tiers, place.levels, place.treatments, place.uneven) == (0, 0, 0, False)
        assert layout.split is Split.TENSOR or ops_apart(outcome) == []


@pytest.mark.parametrize(
    ("cluster", "layout", "states", "mode", "name"),
    [
        ("8xA100", (1, Split.NONE, 8, 1), 0, "none", "DDP over 8, microbatch 2"),
        ("8xA100", (1, Split.NONE, 8, 1), 1, "full", "ZeRO-1 over 8, microbatch 2, full recompute"),
        ("2x8xH100", (1, Split.NONE, 16, 1), 3, "none", "FSDP over 16, microbatch 1"),
        ("2x8xH100", (1, Split.HYBRID, 2, 8), None, "none", "HSDP 2 \N{MULTIPLICATION SIGN} 8, microbatch 1"),
        ("8xA100", (1, Split.TENSOR, 2, 4), 3, "none", "tensor 4 \N{MULTIPLICATION SIGN} FSDP 2, microbatch 8"),
        (
            "2x8xA100",
            (2, Split.TENSOR, 1, 8),
            0,
            "none",
            "tensor 8 \N{MULTIPLICATION SIGN} pipeline 2, microbatch 16",
        ),
    ],
)
def test_plans_have_the_names_that_people_use(cluster, layout, states, mode, name):
    uniform = UniformPlans(searched("llama", cluster)[0].context, StrategySpace())
    (found,) = [one for one in uniform.layouts() if astuple(one) == layout]
    candidate = next(uniform.candidates(found))
    wanted = HYBRID if states is None else ZeroLevel(states)
    plans = [one for one in uniform.priced(found, candidate) if wanted in {one.states, one.states.zero}]
    assert plan_name(uniform.outcome(next(one for one in plans if one.mode is Recompute(mode)))) == name


def test_the_default_tolerance_is_what_the_cost_model_cannot_tell_apart():
    assert default_share(["A100-80GB", "A100-40GB"]) == 0.03
    assert default_share(["A100-80GB", "H100"]) == 0.05
    with pytest.raises(PlanError, match="simplicity=-1"):
        plan(GPT, None, "8xA100", simplicity=-1)


def test_the_best_plan_and_what_it_would_gain_stand_beside_the_answer_in_one_sentence():
    found = plan(LLAMA, None, "2x8xH100", simplicity=0.1)
    best = found.solution.best
    assert best.cost.step_s < found.cost.step_s <= 1.1 * best.cost.step_s
    assert best.cost.sent_bytes > 0
    gain = 1 - best.cost.step_s / found.cost.step_s
    assert found.notes[0].startswith(f"The proved best, {best.what}, would gain {gain:.1%} (")
    assert found.gap == pytest.approx(gain)
    assert found.notes[0] in " ".join(repr(found).split())
    assert type(found).from_json(found.to_json()) == found


@pytest.mark.parametrize("share", long_besides([0.05], [0.0, 0.05]))
@pytest.mark.parametrize("case", long_besides(["gpt, little memory"], CASES))
def test_axes_have_the_names_of_their_parallelism_and_tiers_are_one_axis(case, share):
    model, cluster, memory = CASES[case]
    found = plan(MODELS[model], None, cluster, memory_limit=memory, simplicity=share)
    words = {"data", "tensor", "expert", "context", "pipeline"}
    assert set(found.mesh.axes) <= words
    assert {axis for rank in found.view()["ranks"] for axis in rank["sent_bytes"]} <= words
    shown = str(found.table()) + repr(found)
    assert not any(f"{word}{number}" in shown for word in words for number in range(10))


def test_devices_that_gain_little_are_left_out_and_named():
    found = plan(mlp(width=64, layers=3, batch=64), None, "8xA100")
    assert found.cluster.devices < 8
    assert "Left out" in " ".join(found.notes)
    assert plan(mlp(width=64, layers=3, batch=64), None, "8xA100", simplicity=0).cost.step_s < found.cost.step_s
    every = plan(mlp(width=64, layers=3, batch=64), None, "8xA100", space=StrategySpace(all_devices=True))
    assert every.cluster.devices == 8


def test_hybrid_sharding_shares_out_within_a_chassis_and_sums_gradients_between_them():
    uniform = UniformPlans(searched("llama", "2x4xH100", None)[0].context, StrategySpace())
    layouts = {layout.split: layout for layout in uniform.layouts() if layout.stages == 1 and layout.dimensions == 0}
    hybrid, flat = (
        uniform.priced(layouts[s], next(uniform.candidates(layouts[s]))) for s in (Split.HYBRID, Split.NONE)
    )
    whole = next(one for one in flat if one.states.zero is ZeroLevel.PARAMETERS and one.mode is Recompute.NONE)
    inner = next(one for one in hybrid if one.mode is Recompute.NONE)
    replicated = next(one for one in flat if one.states.zero is ZeroLevel.NONE and one.mode is Recompute.NONE)
    assert whole.bytes < inner.bytes < replicated.bytes
    alone = UniformPlans(searched("llama", "4xH100")[0].context, StrategySpace())
    assert all(layout.split is not Split.HYBRID for layout in alone.layouts())


def test_a_hybrid_plan_is_priced_sent_and_written_like_any_other():
    found = plan(LLAMA, None, "2x4xH100", simplicity=0.0)
    hybrid = found.solution.baselines["HSDP"]
    assert hybrid.cost.sent_bytes > 0
    assert most_sent_bytes(found.decision_costs()) > 0


def test_where_nothing_fits_what_would_is_named_with_its_memory():
    with pytest.raises(InfeasibleError) as caught:
        plan(LLAMA, None, "2xA100-40GB", memory_limit="14GB")
    said = caught.value.action
    assert re.search(r"What would fit: \d+ devices, or offload=True \([\d.]+ GiB\), or LoRA \([\d.]+ GiB\)", said)
    assert len(str(caught.value).splitlines()) <= 6
    more = int(re.search(r"(\d+) devices", said)[1])
    words = {"memory_limit": "14GB", "search": "recursive_programming"}
    assert plan(LLAMA, None, f"{more}xA100-40GB", **words).cost.peak_memory_bytes <= 14e9
    assert plan(LLAMA, None, "2xA100-40GB", offload=True, **words).cost.peak_memory_bytes <= 14e9
