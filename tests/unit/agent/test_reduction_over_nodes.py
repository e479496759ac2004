"""`report(..., all_ranks=True)` on several nodes: the points are those of one node, whatever arrives when."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.reporter import Reporter
from jupyter_autotrain.agent.supervisor.reduction import RankReduction
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

NODES = 3
WORKERS = 2
RANKS = NODES * WORKERS
HOW = ("mean", "sum", "min", "max")
STEPS = 12


class Nodes:
    """Nodes with a folder each; what the others tell comes to the first one later, in order."""

    def __init__(self, root: Path, nodes: int, workers: int) -> None:
        self.folders = [root / str(node) for node in range(nodes)]
        for folder in self.folders:
            folder.mkdir()
        self.reporters: list[Reporter] = []
        for rank in range(nodes * workers):
            self.reporters.append(Reporter(str(self.folders[rank // workers]), rank=rank, ranks=nodes * workers))
        self.told: list[list[str]] = [[] for _ in range(nodes)]
        self.workers = workers
        self.begin()

    def begin(self) -> None:
        """Begin a run of all supervisors."""
        self.reductions: list[RankReduction] = []
        for node, folder in enumerate(self.folders):
            layout = RankLayout(self.workers, node, [("", [])] * len(self.folders))
            tell = self.told[node].append if node else None
            self.reductions.append(RankReduction(layout, lambda: 7.0, tell=tell, directory=str(folder)))

    def carry(self, node: int) -> None:
        """Bring the first node what another one has told next."""
        if self.told[node]:
            self.reductions[0].take(node, self.told[node].pop(0).splitlines())

    def finish(self) -> None:
        """All end; all that is left is carried."""
        for node in range(1, len(self.folders)):
            self.reductions[node].update(is_last=True)
            while self.told[node]:
                self.carry(node)
            self.reductions[0].take(node, None)
        self.reductions[0].update()
        self.reductions[0].update(is_last=True)

    def frames(self) -> list[list[object]]:
        return [json.loads(line) for line in (self.folders[0] / wire.METRICS).read_text().splitlines()]

    def points(self) -> dict[str, list[object]]:
        """Of each metric its steps and values, as written."""
        found: dict[str, list[object]] = {}
        for frame in self.frames():
            if frame[0] == "m":
                for name, value in dict(frame[3]).items():  # type: ignore[call-overload] # the metrics of a frame
                    found.setdefault(name, []).append((frame[1], value))
        return found

    def notes(self) -> list[object]:
        return sorted(str(frame[3]) for frame in self.frames() if frame[0] == "n")


def calls(reports: list[list[tuple[int, str, float]]]) -> list[list[tuple[int, str, float]]]:
    """Of each rank its reports by step, each metric once in a step."""
    found = []
    for own in reports:
        first = {(step, how): value for step, how, value in reversed(own)}
        found.append([(step, how, value) for (step, how), value in sorted(first.items(), key=lambda item: item[0])])
    return found


class Interleaving:
    """The same reports on one node and on several; on these everything happens in an order drawn at random."""

    def __init__(self, root: Path, seed: int) -> None:
        (root / "one").mkdir()
        (root / "many").mkdir()
        self.one = Nodes(root / "one", 1, RANKS)
        self.many = Nodes(root / "many", NODES, WORKERS)
        self.random = random.Random(seed)
        self.left = [self.reports() for _ in range(RANKS)]

    def reports(self) -> list[tuple[int, str, float]]:
        """Of one rank: nearly all steps of each metric."""
        steps = itertools.product(range(STEPS), HOW)
        return [(step, how, self.value()) for step, how in steps if self.random.random() > 0.05]

    def value(self) -> float:
        """Eighths, so that no sum depends on the order; sometimes NaN."""
        return self.random.randint(-64, 64) / 8 if self.random.random() > 0.05 else math.nan

    def report(self) -> None:
        rank = self.random.choice([rank for rank in range(RANKS) if self.left[rank]])
        step, how, value = self.left[rank].pop(0)
        for nodes in (self.one, self.many):
            nodes.reporters[rank](step=step, all_ranks=how, **{f"{how}_of_it": value})

    def run(self) -> None:
        """Until all is reported."""
        while any(self.left):
            kind = self.random.choice(["report", "report", "reduce", "carry"])
            if kind == "report":
                self.report()
            elif kind == "reduce":
                self.many.reductions[self.random.randrange(NODES)].update()
            else:
                self.many.carry(self.random.randrange(1, NODES))


@pytest.mark.parametrize("seed", range(25))
def test_any_interleaving_gives_the_points_of_one_node(tmp_path: Path, seed: int) -> None:
    both = Interleaving(tmp_path, seed)
    both.run()
    assert both.many.points(), "something is reduced before the end"
    both.one.finish()
    both.many.finish()
    assert both.many.points() == both.one.points()
    assert both.many.notes() == both.one.notes()


def test_the_first_node_waits_for_what_the_others_report_together(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    nodes.reporters[0](step=0, all_ranks=True, loss=1.0)
    nodes.reductions[0].update()
    assert nodes.points() == {}
    nodes.reporters[1](step=0, all_ranks=True, loss=3.0)
    nodes.finish()
    assert nodes.points() == {"loss": [(0, 2.0)]}


def test_a_node_that_is_gone_is_waited_for_no_more(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    nodes.reporters[0](step=0, all_ranks=True, loss=1.0)
    nodes.reductions[0].take(1, None)
    nodes.reductions[0].update()
    assert nodes.points() == {"loss": [(0, 1.0)]}
    assert nodes.notes() == ["loss was not reported by rank 1 at step 0; there it is the mean of the other ranks"]


def test_what_an_earlier_run_has_reported_is_not_reduced_again(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    for reporter in nodes.reporters:
        reporter(step=0, all_ranks=True, loss=1.0)
    nodes.begin()
    nodes.reporters[0](step=1, all_ranks=True, loss=2.0)
    nodes.reporters[1](step=1, all_ranks=True, loss=4.0)
    nodes.finish()
    assert nodes.points() == {"loss": [(1, 3.0)]}
