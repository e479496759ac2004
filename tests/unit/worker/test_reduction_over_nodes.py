"""`report(..., all_ranks=True)` on several nodes: the points are those of one node, whatever arrives when."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.backends.ssh import agent_files
from jupyter_autotrain.core import wire
from jupyter_autotrain.worker.reduction import RankReduction
from jupyter_autotrain.worker.reporter import Reporter

NODES = 3
WORKERS = 2
RANKS = NODES * WORKERS
HOW = ("mean", "sum", "min", "max")
# Eighths, so that no sum depends on the order.
VALUES = st.one_of(st.integers(-64, 64).map(lambda number: number / 8), st.just(float("nan")))
REPORTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(HOW), VALUES), max_size=6)


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


@settings(max_examples=30, deadline=None)
@given(st.lists(REPORTS, min_size=RANKS, max_size=RANKS), st.data())
def test_any_interleaving_gives_the_points_of_one_node(
    reports: list[list[tuple[int, str, float]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "one").mkdir()
        (Path(root) / "many").mkdir()
        one = Nodes(Path(root) / "one", 1, RANKS)
        many = Nodes(Path(root) / "many", NODES, WORKERS)
        left = calls(reports)
        for _ in range(data.draw(st.integers(0, 30))):
            act(many, left, data, one)
        for rank in range(RANKS):
            while left[rank]:
                report(rank, left, many, one)
        one.finish()
        many.finish()
        assert many.points() == one.points()
        assert many.notes() == one.notes()


def act(many: Nodes, left: list[list[tuple[int, str, float]]], data: st.DataObject, one: Nodes) -> None:
    """One thing that happens: a rank reports, a supervisor looks, bytes arrive, or a new carrier begins anywhere."""
    rank = data.draw(st.integers(0, RANKS - 1))
    node = data.draw(st.integers(0, NODES - 1))
    kind = data.draw(st.sampled_from(["report", "reduce", "carry"]))
    if kind == "report" and left[rank]:
        report(rank, left, many, one)
    elif kind == "reduce":
        many.reductions[node].update()
    elif kind == "carry" and node:
        has = many.carry(node, 0, 0)
        many.carry(node, data.draw(st.integers(0, has + 9)), data.draw(st.integers(1, 200)))


def report(rank: int, left: list[list[tuple[int, str, float]]], many: Nodes, one: Nodes) -> None:
    step, how, value = left[rank].pop(0)
    for nodes in (many, one):
        nodes.reporters[rank](step=step, all_ranks=how, **{f"{how}_of_it": value})


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
