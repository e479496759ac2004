"""`report(..., all_ranks=True)`: what the supervisor makes of the files of all ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.reporter import Reporter
from jupyter_autotrain.agent.supervisor.reduction import RankReduction
from jupyter_autotrain.agent.trial.rank_layout import RankLayout


class Ranks:
    def __init__(self, directory: Path, count: int) -> None:
        self.reporters = [Reporter(str(directory), rank=rank, ranks=count) for rank in range(count)]
        self.reduction = RankReduction(RankLayout(count, 0, [("", [])]), lambda: 7.0)
        self.directory = directory

    def reduced(self, *, is_last: bool = False) -> list[object]:
        self.reduction.update(is_last=is_last)
        lines = (self.directory / wire.METRICS).read_text().splitlines()
        frames = [json.loads(line) for line in lines]
        return [[frame[1], frame[3]] if frame[0] == "m" else frame[3] for frame in frames if frame[0] in {"m", "n"}]


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ranks:
    monkeypatch.chdir(tmp_path)
    return Ranks(tmp_path, 3)


def test_a_step_is_the_mean_of_all_ranks_once_all_have_reported_it(ranks: Ranks) -> None:
    for rank in (0, 1):
        ranks.reporters[rank](step=0, all_ranks=True, loss=float(rank))
    assert ranks.reduced() == []
    ranks.reporters[2](step=0, all_ranks=True, loss=5.0)
    assert ranks.reduced() == [[0, {"loss": 2.0}]]
    assert ranks.reduced() == [[0, {"loss": 2.0}]]


@pytest.mark.parametrize(("how", "value"), [("sum", 6.0), ("min", 1.0), ("max", 3.0), ("mean", 2.0)])
def test_the_reduction_can_be_chosen(ranks: Ranks, how: str, value: float) -> None:
    for rank, reporter in enumerate(ranks.reporters):
        reporter(step=4, all_ranks=how, loss=float(rank + 1))
    assert ranks.reduced() == [[4, {"loss": value}]]


def test_a_rank_that_leaves_out_a_step_is_left_out_there_with_one_note(ranks: Ranks) -> None:
    for step in range(3):
        for rank in (0, 1):
            ranks.reporters[rank](step=step, all_ranks=True, loss=1.0 + step)
    ranks.reporters[2](step=2, all_ranks=True, loss=6.0)
    note = "loss was not reported by rank 2 at step 0; there it is the mean of the other ranks"
    assert ranks.reduced() == [[0, {"loss": 1.0}], note, [1, {"loss": 2.0}], [2, {"loss": 4.0}]]


def test_at_the_end_what_some_have_reported_counts(ranks: Ranks) -> None:
    ranks.reporters[1](step=0, all_ranks="max", acc=0.5)
    assert ranks.reduced() == []
    note = "acc was not reported by rank 0, 2 at step 0; there it is the max of the other ranks"
    assert ranks.reduced(is_last=True) == [[0, {"acc": 0.5}], note]


def test_nan_of_one_rank_is_nan_of_all(ranks: Ranks) -> None:
    for rank, reporter in enumerate(ranks.reporters):
        reporter(step=0, all_ranks=True, loss=float("nan") if rank == 1 else 1.0)
    assert ranks.reduced() == [[0, {"loss": None}]]


def test_a_plain_report_of_another_rank_changes_nothing(ranks: Ranks) -> None:
    ranks.reporters[1](step=0, loss=9.0)
    ranks.reporters[0](step=0, loss=1.0)
    assert ranks.reduced(is_last=True) == [[0, {"loss": 1.0}]]


def test_what_a_rank_repeats_after_it_was_started_again_is_ignored(ranks: Ranks) -> None:
    for reporter in ranks.reporters:
        reporter(step=5, all_ranks=True, loss=1.0)
    assert ranks.reduced() == [[5, {"loss": 1.0}]]
    for rank in range(3):
        again = Reporter(str(ranks.directory), rank=rank, ranks=3)
        again(step=5, all_ranks=True, loss=9.0)
        again(step=6, all_ranks=True, loss=2.0)
    assert ranks.reduced() == [[5, {"loss": 1.0}], [6, {"loss": 2.0}]]


def test_an_unknown_reduction_is_told_and_the_mean_is_taken(ranks: Ranks) -> None:
    for rank, reporter in enumerate(ranks.reporters):
        reporter(step=0, all_ranks="median", loss=float(rank))
    assert [0, {"loss": 1.0}] in ranks.reduced()
    ranks.reporters[0].invalid.flush()
    assert "all_ranks='median'" in (ranks.directory / wire.METRICS).read_text()


def test_with_one_worker_it_is_a_report_like_any_other(tmp_path: Path) -> None:
    Reporter(str(tmp_path))(step=0, all_ranks=True, loss=1.0)
    assert '["m",0,' in (tmp_path / wire.METRICS).read_text()


def test_in_an_elastic_trial_on_several_hosts_the_ranks_of_the_first_one_count_and_a_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ranks = Ranks(tmp_path, 2)
    ranks.reduction = RankReduction(RankLayout(2, 0, [("", [])] * 2), lambda: 7.0, is_elastic=True)
    assert ranks.reduced() == []
    for rank, reporter in enumerate(ranks.reporters):
        reporter(step=0, all_ranks=True, loss=float(rank))
    note = "all_ranks= counts ranks 0 to 1, those of the first host"
    assert ranks.reduced() == [note, [0, {"loss": 0.5}]]
