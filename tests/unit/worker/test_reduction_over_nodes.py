"""`report(..., all_ranks=True)` on several nodes: the points are those of one node, whatever arrives when."""

from __future__ import annotations

import base64
import itertools
import json
import math
import random
from pathlib import Path

import pytest

from jupyter_autotrain.backends.ssh import agent_files
from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.reduction import RankReduction
from jupyter_autotrain.worker.reporter import Reporter

NODES = 3
WORKERS = 2
RANKS = NODES * WORKERS
HOW = ("mean", "sum", "min", "max")
STEPS = 12


class Nodes:
    """Nodes with a folder each; what the others tell is carried to the first one."""

    def __init__(self, root: Path, nodes: int, workers: int) -> None:
        self.folders = [root / str(node) for node in range(nodes)]
        for folder in self.folders:
            folder.mkdir()
        self.reporters: list[Reporter] = []
        for rank in range(nodes * workers):
            self.reporters.append(Reporter(str(self.folders[rank // workers]), rank=rank, ranks=nodes * workers))
        self.reductions: list[RankReduction] = []
        for node, folder in enumerate(self.folders):
            self.reductions.append(RankReduction(workers, lambda: 7.0, nodes, node, directory=str(folder)))

    def carry(self, node: int, offset: int, most_bytes: int) -> int:
        """As a carrier that knows `offset`, which may be anything; gives what the first node has."""
        name = wire.stream_of_rank(wire.PARTIALS, node)
        data, _, _, _ = agent_files.read_piece(self.folders[node], name, offset, most_bytes)
        return agent_files.append(self.folders[0], name, offset, base64.b64decode(data))

    def finish(self) -> None:
        """All end; all that is left is carried."""
        for node in range(1, len(self.folders)):
            self.reductions[node].update(is_last=True)
            self.carry(node, self.carry(node, 0, 0), 1 << 20)
        self.reductions[0].update()
        assert not self.reductions[0].awaits_other_nodes
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

    def carry(self) -> None:
        """A carrier sends any piece: one that is there already, the next, or one too far."""
        node = self.random.randrange(1, NODES)
        has = self.many.carry(node, 0, 0)
        offset = max(0, has + self.random.choice([0, 0, 0, -self.random.randint(1, 99), self.random.randint(1, 99)]))
        self.many.carry(node, offset, self.random.randint(1, 200))

    def run(self) -> None:
        """Until all is reported."""
        while any(self.left):
            kind = self.random.choice(["report", "report", "reduce", "carry"])
            if kind == "report":
                self.report()
            elif kind == "reduce":
                self.many.reductions[self.random.randrange(NODES)].update()
            else:
                self.carry()


@pytest.mark.parametrize("seed", range(25))
def test_any_interleaving_gives_the_points_of_one_node(tmp_path: Path, seed: int) -> None:
    both = Interleaving(tmp_path, seed)
    both.run()
    assert both.many.points(), "something is reduced before the end"
    both.one.finish()
    both.many.finish()
    assert both.many.points() == both.one.points()
    assert both.many.notes() == both.one.notes()
    for node in range(1, NODES):
        name = wire.stream_of_rank(wire.PARTIALS, node)
        assert (both.many.folders[0] / name).read_bytes() == (both.many.folders[node] / name).read_bytes()


def test_the_first_node_waits_for_what_the_others_report_together(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    nodes.reporters[0](step=0, all_ranks=True, loss=1.0)
    nodes.reductions[0].update()
    assert nodes.reductions[0].awaits_other_nodes
    nodes.reporters[1](step=0, all_ranks=True, loss=3.0)
    nodes.finish()
    assert nodes.points() == {"loss": [(0, 2.0)]}


def test_nobody_waits_where_nothing_is_reported_together(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    nodes.reporters[0](step=0, loss=1.0)
    nodes.reductions[0].update()
    assert not nodes.reductions[0].awaits_other_nodes


def test_partial_results_that_a_cell_has_damaged_are_passed_over(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    nodes.reporters[0](step=0, all_ranks=True, loss=1.0)
    lines = ['["p", 0, "loss", "mean", [0, 1, 1, 1], []]', '["p", 0, "loss", "mean", ["x", 1], []]', '["p", []]', "["]
    (nodes.folders[1] / "partials-1").write_text("\n".join(lines) + "\n")
    nodes.finish()
    assert nodes.points() == {"loss": [(0, 1.0)]}


def test_what_an_earlier_run_has_reported_is_not_reduced_again(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 2, 1)
    for reporter in nodes.reporters:
        reporter(step=0, all_ranks=True, loss=1.0)
    nodes.reductions = [RankReduction(1, lambda: 7.0, 2, node, directory=str(nodes.folders[node])) for node in range(2)]
    nodes.reporters[0](step=1, all_ranks=True, loss=2.0)
    nodes.reporters[1](step=1, all_ranks=True, loss=4.0)
    nodes.finish()
    assert nodes.points() == {"loss": [(1, 3.0)]}
