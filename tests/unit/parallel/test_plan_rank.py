"""Plans are ranked by time, and of equally fast ones by memory; no sum of seconds and bytes decides between them."""

from itertools import product
from math import inf
from operator import itemgetter
from types import SimpleNamespace

import numpy as np
import pytest

from jupyter_autotrain.parallel.search.factors.elimination import minimise
from jupyter_autotrain.parallel.search.factors.lagrangian import Bracket, DualPoint, Relaxation, maximise_dual
from jupyter_autotrain.parallel.search.factors.problem import CostTable, Factor, Problem, rank
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, alternatives
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.stage.unrolled_solver import exhaustive


def outcome(step_s, held_bytes, candidate="c"):
    return SimpleNamespace(step_s=step_s, bytes=held_bytes, rank=rank(step_s, held_bytes), candidate=candidate)


def test_a_faster_plan_ranks_first_however_much_it_holds():
    assert rank(1.0, 1e15) < rank(1.0 + 1e-12, 0.0)


def test_of_equally_fast_plans_the_one_with_less_memory_ranks_first():
    assert rank(1.0, 10.0) < rank(1.0, 11.0)


def test_the_search_keeps_the_lighter_of_equally_fast_plans_whichever_comes_first():
    light = outcome(1.0, 10.0)
    heavy = outcome(1.0, 11.0)
    for order in ((light, heavy), (heavy, light)):
        search = BranchAndBound(context=SimpleNamespace(progress=ProgressMonitor()))
        for found in order:
            search.update_incumbent(found)
        assert search.best is light


def test_alternatives_are_listed_in_that_order():
    fast = outcome(1.0, 99.0, "a")
    light = outcome(2.0, 10.0, "b")
    heavy = outcome(2.0, 11.0, "c")
    assert list(alternatives([heavy, light, fast], 3)) == [fast, light, heavy]


def test_the_oracle_takes_the_lightest_of_the_fastest():
    problem = Problem({0: 3}, (Factor((0,), np.array([1.0, 1.0, 2.0]), np.array([5.0, 3.0, 0.0])),))
    assert exhaustive(problem) == (1.0, {0: 1})


def test_the_dual_keeps_the_lighter_of_equally_fast_assignments():
    heavy = DualPoint(1.0, 10.0, "heavy")
    light = DualPoint(9.0, 3.0, "light")
    found = maximise_dual(lambda _: Relaxation(-inf, DualPoint(9.0, 2.0, "lighter")), Bracket(heavy, light, 0.0), 4.0)
    assert found.best.assignment == "lighter"


@pytest.mark.parametrize("seed", range(20))
def test_of_equally_light_assignments_the_fastest_is_found_however_many_bytes_they_hold(seed):
    rng = np.random.default_rng(seed)
    scopes = [(0, 1), (1, 2), (2, 3), (0, 3)]
    held = [rng.integers(0, 2, (3, 3)) * 8e10 for _ in scopes]
    seconds = [rng.integers(1, 9, (3, 3)) * 1e-6 for _ in scopes]
    tables = [CostTable(scope, b + 1j * s) for scope, b, s in zip(scopes, held, seconds, strict=True)]

    def rank_of(values):
        at = [itemgetter(*scope)(values) for scope in scopes]
        return sum(b[i] for b, i in zip(held, at, strict=True)), sum(s[i] for s, i in zip(seconds, at, strict=True))

    value, chosen, _ = minimise(tables)
    found = rank_of([chosen[v] for v in range(4)])
    assert found == pytest.approx(min(map(rank_of, product(range(3), repeat=4))))
    assert (value.real, value.imag) == pytest.approx(found)
