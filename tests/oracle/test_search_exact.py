"""The exact solver against the definition and against a mixed-integer program."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.search.factors.elimination import eliminate, minimise
from jupyter_autotrain.parallel.search.factors.elimination_order import min_fill_order
from jupyter_autotrain.parallel.search.factors.lagrangian import (
    Bracket,
    DoesNotFit,
    DualPoint,
    Relaxation,
    maximise_dual,
)
from jupyter_autotrain.parallel.search.factors.lagrangian_branch_and_bound import minimise_bounded
from jupyter_autotrain.parallel.search.factors.problem import Factor, Problem, neighbours
from jupyter_autotrain.parallel.search.stage.unrolled_solver import exhaustive
from tests.matrices import long_besides

SHAPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6)],
    "stacked triangles": [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)],
    "wheel": [(0, i) for i in range(1, 6)] + [(i, i % 5 + 1) for i in range(1, 6)],
}


def random_problem(seed, *, edges=None, most=8, values=4):
    draw = np.random.default_rng(seed)
    count = 1 + max(max(e) for e in edges) if edges else int(draw.integers(1, most + 1))
    if edges is None:
        edges = [(u, v) for v in range(count) for u in range(v) if draw.random() < 0.45]
    sizes = {v: int(draw.integers(1, values + 1)) for v in range(count)}

    def factor(scope):
        shape = tuple(sizes[v] for v in scope)
        seconds = draw.integers(0, 20, shape).astype(float)
        return Factor(scope, seconds, draw.integers(0, 20, shape).astype(float))

    return Problem(sizes, tuple([factor((v,)) for v in sizes] + [factor(e) for e in edges]))


def graphs(many):
    """Seeds: mostly random graphs, and every named shape in turn."""
    shapes = [None, None, None, *SHAPES.values()]
    return (random_problem(seed, edges=shapes[seed % len(shapes)], values=2 + seed % 3) for seed in many)


@pytest.mark.parametrize("start", long_besides(range(500), range(0, 2_000, 100)))
def test_elimination_equals_exhaustion_on_thousands_of_graphs(start):
    for problem in graphs(range(start, start + 100)):
        value, chosen, exact = minimise(problem.weighted(0.0))
        assert exact
        assert value == exhaustive(problem)[0] == problem.seconds_of(chosen)


@pytest.mark.parametrize("start", long_besides(range(500), range(0, 2_000, 100)))
def test_under_a_memory_bound_the_answer_is_still_the_best_on_thousands_of_graphs(start):
    for seed, problem in enumerate(graphs(range(start, start + 100)), start):
        heaviest = minimise(problem.weighted(0.0))[1]
        least = minimise(problem.bytes_only())[0]
        limit = least + (0.0, 0.15, 0.3, 0.5, 0.7)[seed % 5] * max(0.0, problem.bytes_of(heaviest) - least)
        found = minimise_bounded(problem, limit)
        assert found.gap == 0.0
        assert found.bytes <= limit
        assert found.seconds == exhaustive(problem, limit)[0] == problem.seconds_of(found.assignment)


@pytest.mark.parametrize("seed", range(20))
def test_an_infeasible_limit_names_the_least_memory_and_that_memory_does(seed):
    problem = random_problem(seed)
    least = minimise(problem.bytes_only())[0]
    with pytest.raises(DoesNotFit) as caught:
        minimise_bounded(problem, least - 1)
    assert caught.value.least_bytes == least
    assert exhaustive(problem, least - 1) is None
    assert minimise_bounded(problem, caught.value.least_bytes).bytes <= least


@pytest.mark.parametrize("seed", range(10))
def test_more_memory_never_makes_the_answer_worse(seed):
    problem = random_problem(seed, edges=SHAPES["wheel"])
    least = minimise(problem.bytes_only())[0]
    times = [minimise_bounded(problem, least + extra).seconds for extra in range(0, 60, 6)]
    assert times == sorted(times, reverse=True)


def as_program(problem, limit):
    """One 0/1 variable per entry of each factor, tied to the values of its variables by row sums."""
    initial_meshes = {}
    costs = []
    held = []
    for index, f in enumerate(problem.factors):
        initial_meshes[index] = len(costs)
        costs += f.seconds.ravel().tolist()
        held += f.bytes.ravel().tolist()
    unary = {f.scope[0]: i for i, f in enumerate(problem.factors) if len(f.scope) == 1}
    rows = []
    sums = []
    for index, f in enumerate(problem.factors):
        for axis, v in enumerate(f.scope):
            for value in range(f.seconds.shape[axis]):
                row = np.zeros(len(costs))
                mask = np.zeros(f.seconds.shape)
                mask[(slice(None),) * axis + (value,)] = 1
                row[initial_meshes[index] : initial_meshes[index] + mask.size] = mask.ravel()
                if len(f.scope) > 1:
                    row[initial_meshes[unary[v]] + value] -= 1
                    rows.append(row)
                    sums.append(0)
        if len(f.scope) == 1:
            row = np.zeros(len(costs))
            row[initial_meshes[index] : initial_meshes[index] + f.seconds.size] = 1
            rows.append(row)
            sums.append(1)
    constraints = [LinearConstraint(np.array(rows), sums, sums), LinearConstraint(np.array([held]), -np.inf, limit)]
    return milp(costs, integrality=np.ones(len(costs)), bounds=(0, 1), constraints=constraints)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounded", [False, True])
def test_elimination_equals_the_mixed_integer_program_on_larger_graphs(seed, bounded):
    edges = [(i, i + 1) for i in range(17)] + [(i, i + 3) for i in range(0, 15, 3)]
    problem = random_problem(seed, edges=edges, values=5)
    heavy = minimise(problem.weighted(0.0))[1]
    least = minimise(problem.bytes_only())[0]
    limit = (least + problem.bytes_of(heavy)) // 2 if bounded else 1e9
    found = minimise_bounded(problem, limit)
    assert found.gap == 0.0
    assert found.seconds == pytest.approx(as_program(problem, limit).fun)


def test_too_wide_a_graph_gives_a_true_lower_bound_and_a_valid_answer():
    problem = random_problem(3, edges=[(u, v) for v in range(8) for u in range(v)], values=4)
    reduction = eliminate(problem.weighted(0.0), limit=16)
    best = exhaustive(problem)[0]
    assert not reduction.exact
    assert reduction.constant <= best <= problem.seconds_of(reduction.decode())


def test_the_oracle_refuses_large_problems():
    problem = random_problem(1, edges=[(i, i + 1) for i in range(30)])
    with pytest.raises(PlanError, match="exhaustive"):
        exhaustive(problem)


def every_assignment(problem):
    for values in product(*map(range, problem.sizes.values())):
        yield dict(zip(problem.sizes, values, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_exhaustion_is_the_definition(seed):
    problem = random_problem(seed, most=5)
    for limit in (0.0, 40.0, 80.0, 1e9):
        every = [x for x in every_assignment(problem) if problem.bytes_of(x) <= limit]
        found = exhaustive(problem, limit)
        assert (found is None) == (not every)
        if found:
            seconds, chosen = found
            ranked = min((problem.seconds_of(x), problem.bytes_of(x)) for x in every)
            assert (seconds, problem.bytes_of(chosen)) == ranked


def bounded_problems(seeds):
    """Problems with their assignments, fastest and lightest one, where the fastest holds more than the lightest."""
    for seed in seeds:
        problem = random_problem(seed, most=5)
        every = list(every_assignment(problem))
        fast, light = (min(every, key=key) for key in (problem.seconds_of, problem.bytes_of))
        if problem.bytes_of(fast) > problem.bytes_of(light):
            yield problem, every, fast, light


@pytest.mark.parametrize("bounded", list(bounded_problems(range(60))))
def test_the_dual_is_its_value_at_the_best_multiplier_and_never_above_the_optimum(bounded):
    problem, every, fast, light = bounded
    lines = np.array([(problem.seconds_of(x), problem.bytes_of(x)) for x in every])
    limit = (problem.bytes_of(fast) + problem.bytes_of(light)) / 2

    def point(x):
        return DualPoint(problem.seconds_of(x), problem.bytes_of(x), x)

    def at(multiplier):
        return (lines @ (1.0, multiplier)).min() - multiplier * limit

    def solve(multiplier):
        value, chosen, _ = minimise(problem.weighted(multiplier))
        return Relaxation(value, point(chosen))

    found = maximise_dual(solve, Bracket(point(fast), point(light), at(0.0)), limit)
    assert found.bound_s == pytest.approx(max(at(y) for y in np.linspace(0.0, 40.0, 4001)), rel=1e-2)
    assert all(at(y) <= found.bound_s + 1e-9 for y in np.linspace(0.0, 40.0, 4001))
    assert found.bound_s == pytest.approx(at(found.multiplier))
    assert found.bound_s <= exhaustive(problem, limit)[0] + 1e-9


def fill_in(near, variable):
    """Return the edges that eliminating a variable adds between its neighbours."""
    return sum(b not in near[a] for a, b in combinations(near[variable], 2))


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_elimination_is_min_fill(seed):
    scopes = [factor.scope for factor in random_problem(seed).factors]
    near = neighbours(scopes)
    for v in min_fill_order(scopes, frozenset()):
        fills = {u: fill_in(near, u) for u in near}
        assert (fills[v], len(near[v]), v) == min((fills[u], len(near[u]), u) for u in near)
        others = near.pop(v)
        for u in others:
            near[u] = (near[u] | others) - {u, v}
    assert not near
