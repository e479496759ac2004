"""Searches that do not run to their end: interrupts, time limits, huge graphs."""

import inspect
import random
import signal
import sys
from dataclasses import replace
from itertools import count

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import PlanError, TraceError
from jupyter_autotrain.parallel.graph.builder import Builder
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.plan import Plan
from jupyter_autotrain.parallel.search import Method, SearchLimits, SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.outer import search_run
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from tests.example_graphs import gpt, random_graph
from tests.matrices import long_besides
from tests.oracle.whole_space import plan

LAYERS = prepare(gpt(layers=4, batch=16, width=512, heads=8, sequence=256, vocabulary=4096))
NO_LAYERS = prepare(random_graph(3, ops=60))
MACHINE = "8xA100"


@pytest.fixture(autouse=True)
def interruptible():
    """As in a terminal or a kernel; a job in the background starts with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Clock:
    """Time stands still; at one reading Ctrl-C is pressed."""

    def __init__(self, press_at):
        self.readings = count()
        self._press_at = press_at

    def __call__(self):
        if next(self.readings) == self._press_at:
            signal.raise_signal(signal.SIGINT)
        return 0.0


def readings_of(graph, asked):
    solve(graph, MACHINE, asked)  # what it remembers for next time makes the next time shorter
    clock = Clock(press_at=None)
    solution = solve(graph, MACHINE, asked, clock=clock)
    return next(clock.readings), solution


@pytest.mark.parametrize("graph", [LAYERS, NO_LAYERS], ids=["layers", "no layers"])
def test_whenever_it_is_interrupted_a_search_gives_its_best_plan_so_far_with_a_true_gap(graph):
    asked = SearchRequest(space=StrategySpace(max_axes=1, microbatches=(1, 2)))
    total, best = readings_of(graph, asked)
    steps = sorted({1, 2, 3, total // 4, total // 2, total - 2})
    for at in steps:
        solution = solve(graph, MACHINE, asked, clock=Clock(at))
        assert not solution.complete
        assert set(solution.decision.ops) == set(best.decision.ops)
        assert solution.cost.step_s >= best.cost.step_s * (1 - 1e-9)
        assert solution.bound_s <= best.cost.step_s * (1 + 1e-9)
        assert solution.gap == pytest.approx(1 - solution.bound_s / solution.cost.step_s, abs=1e-8)


@pytest.mark.parametrize("graph", [LAYERS, NO_LAYERS], ids=["layers", "no layers"])
@pytest.mark.parametrize("calls", [20, 300, 5_000, 12_000])
@pytest.mark.parametrize("execute", [False, True])
def test_an_interrupt_between_any_two_calls_gives_a_plan(graph, calls, execute):
    """Ctrl-C comes where it comes: here inside the search, after a number of its calls."""
    left = count(-calls)

    def press(frame, event, _argument):
        # A generator that is cleared away is "called" as well; what is raised there, Python only prints.
        if event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR and next(left) == 0:
            raise KeyboardInterrupt

    asked = SearchRequest(space=StrategySpace(max_axes=1, microbatches=(1, 2)), execute=execute)
    began = count()

    def clock():
        if next(began) == 0:
            sys.setprofile(press)
        return 0.0

    try:
        solution = solve(graph, MACHINE, asked, clock=clock)
    finally:
        sys.setprofile(None)
    assert next(left) > 0
    assert set(solution.decision.ops) == {op.name for op in graph.ops}


def test_the_second_interrupt_ends_the_search_itself():
    readings = count()

    def clock():
        if next(readings) >= 1:
            raise KeyboardInterrupt
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        solve(NO_LAYERS, MACHINE, clock=clock)


@pytest.mark.parametrize("graph", [LAYERS, NO_LAYERS], ids=["layers", "no layers"])
def test_an_interrupted_plan_says_so_wherever_it_is_read(graph):
    plan = Plan.of(SearchRequest(), solve(graph, MACHINE, clock=Clock(1)))
    assert not plan.solution.complete
    for text in (repr(plan), plan.to_html()):
        assert "stopped early" in text
    assert plan.view()["complete"] is False
    asked = SearchRequest(space=StrategySpace(max_axes=1, microbatches=(1,)))
    whole = Plan.of(asked, solve(graph, MACHINE, asked))
    assert "stopped early" not in repr(whole) + whole.to_html()


def test_an_interrupt_among_the_well_known_plans_still_gives_one_that_was_searched():
    instant = solve(LAYERS, MACHINE, SearchRequest(search=Method.RECURSIVE_PROGRAMMING))
    stopped = solve(LAYERS, MACHINE, clock=Clock(3))
    assert any(b.fits for b in stopped.baselines.values())
    assert not stopped.complete
    assert stopped.cost.step_s <= instant.cost.step_s * (1 + 1e-9)


def test_a_huge_graph_has_a_time_limit_of_its_own(monkeypatch):
    monkeypatch.setattr(search_run, "HUGE_OPS", 10)
    ticks = count(step=30)
    assert not solve(NO_LAYERS, MACHINE, clock=lambda: float(next(ticks))).complete
    monkeypatch.setattr(search_run, "HUGE_OPS", 1_000)
    assert solve(NO_LAYERS, MACHINE, clock=lambda: float(next(ticks))).complete


def test_a_baseline_that_was_not_weighed_says_why():
    solution = solve(LAYERS, MACHINE, clock=Clock(1))
    assert {b.reason for b in solution.baselines.values()} == {"the search was stopped before it was evaluated"}


@pytest.mark.parametrize("graph", [LAYERS, NO_LAYERS], ids=["layers", "no layers"])
def test_no_time_at_all_still_gives_a_plan(graph):
    ticks = count()
    solution = solve(graph, MACHINE, SearchRequest(limits=SearchLimits(time_s=0.0)), clock=lambda: float(next(ticks)))
    assert not solution.complete
    assert 0 < solution.gap < 1


def test_when_time_is_up_the_best_so_far_comes_with_its_gap():
    ticks = count()
    asked = SearchRequest(space=StrategySpace.placements(2), baselines=False, limits=SearchLimits(time_s=1.5))
    solution = solve(LAYERS, MACHINE, asked, clock=lambda: float(next(ticks)))
    assert not solution.complete
    assert solution.gap > 0


def test_a_first_plan_that_does_not_fit_is_an_error_that_says_what_to_do():
    asked = SearchRequest(limits=SearchLimits(memory_bytes=100.0, time_s=0.0))
    ticks = count()
    with pytest.raises(PlanError, match="stopped before it found a plan that fits"):
        solve(NO_LAYERS, MACHINE, asked, clock=lambda: float(next(ticks)))


@pytest.mark.parametrize("ops", long_besides([1_000], [1_000, 3_000, 20_000]))
def test_a_huge_graph_without_layers_has_a_plan_before_time_is_up_and_a_gap_after(ops):
    graph = prepare(random_graph(5, ops=ops, batch=64))
    ticks = count()
    asked = SearchRequest(limits=SearchLimits(time_s=100.0))
    solution = solve(graph, MACHINE, asked, clock=lambda: float(next(ticks)))
    assert not solution.complete
    assert len(solution.decision.ops) == len(graph.ops)
    assert solution.gap < 0.5


@pytest.mark.parametrize("layers", long_besides([200], [200, 1_000]))
def test_a_huge_graph_of_layers_is_as_easy_as_a_small_one(layers):
    traced = gpt(layers=layers, batch=16, width=512, heads=8, sequence=256, vocabulary=4096)
    assert len(traced.ops) > 19 * layers
    graph = prepare(traced)
    asked = SearchRequest(search=Method.RECURSIVE_PROGRAMMING, baselines=False)
    solution = solve(graph, MACHINE, asked)
    assert solution.complete
    assert len(solution.decision.ops) == len(graph.ops)


def tangled(ops, seed):
    """Additions of any two earlier tensors: no small width, nothing repeats."""
    draw = random.Random(seed)
    b = Builder("tangled", "float32")
    made = [b.input("x", 64, 64)]
    for i in range(ops):
        made.append(b.apply("mm", [draw.choice(made), b.parameter(f"w{i}", 64, 64)], (64, 64), f"product{i}"))
        made.append(b.apply("add", [made[-1], draw.choice(made[:-1])], (64, 64), f"sum{i}"))
    return b.graph()


def test_a_tangled_graph_that_seems_to_repeat_has_a_plan_with_a_gap():
    graph = prepare(tangled(60, 7))
    assert graph.repeated_blocks
    solution = solve(graph, MACHINE, SearchRequest(space=StrategySpace.placements(2)))
    assert solution.complete
    assert solution.bound_s <= solution.cost.step_s
    assert solution.gap < 0.01


@pytest.mark.parametrize("ops", long_besides([500], [500, 1_500]))
def test_a_tangled_graph_has_a_plan_in_bounded_time(ops):
    graph = tangled(ops, 7)
    ticks = count()
    asked = SearchRequest(limits=SearchLimits(time_s=5_000.0))
    solution = solve(graph, MACHINE, asked, clock=lambda: float(next(ticks)))
    assert not solution.complete
    assert solution.bound_s <= solution.cost.step_s


@pytest.mark.parametrize("seed", range(5))
def test_the_compute_lower_bound_is_below_every_plan(seed):
    asked = SearchRequest(space=replace(StrategySpace(max_axes=2), microbatches=(1, 2, 4)), baselines=False)
    for graph in (random_graph(seed, ops=25), LAYERS):
        one = SearchRun.of(graph, ClusterSpec.parse("4xA100+4xV100-32GB"), asked, ProgressMonitor(lambda: 0.0))
        one.first_plans()
        one.search.run(one.candidates)
        assert one.search.outcomes
        for outcome in one.search.outcomes:
            assert one.search.context.compute_bound_s(outcome.candidate) <= outcome.step_s


def test_an_interrupt_of_the_tracing_is_said_in_three_clauses_and_leaves_the_model_as_it_was():
    torch = pytest.importorskip("torch")

    class Slow(torch.nn.Linear):
        is_pressed = True

        def forward(self, x):
            if self.is_pressed:
                raise KeyboardInterrupt
            return super().forward(x)

    model = Slow(4, 4)
    inputs = torch.zeros(8, 4)
    with pytest.raises(TraceError, match="still being traced") as told:
        plan(model, inputs, "2xA100")
    assert len(str(told.value).splitlines()) == 3
    model.is_pressed = False
    assert plan(model, inputs, "2xA100").cost.step_s > 0
    assert model(inputs).shape == (8, 4)
