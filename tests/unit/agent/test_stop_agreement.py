"""`should_stop()` of several ranks: the answer of rank 0 at a call is that of all at this call."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import stop_agreement
from jupyter_autotrain.agent.ranks.stop_agreement import FileBoard, StopAgreement, make_agreement
from jupyter_autotrain.testing import wait_until


class Rank:
    def __init__(self, path: Path, decides: bool) -> None:
        self.is_asked = False
        self.alone = 0
        self.agreement = StopAgreement(FileBoard(str(path)), decides, lambda: self.is_asked, self.on_alone)

    def on_alone(self) -> None:
        self.alone += 1

    def ask(self) -> bool:
        return self.agreement.ask()


@pytest.fixture
def ranks(tmp_path: Path) -> tuple[Rank, Rank]:
    return Rank(tmp_path / "answers", True), Rank(tmp_path / "answers", False)


def test_a_rank_that_is_behind_gets_the_old_answers_first(ranks: tuple[Rank, Rank]) -> None:
    first, second = ranks
    assert [first.ask(), first.ask()] == [False, False]
    first.is_asked = True
    second.is_asked = True
    assert first.ask() is True
    assert [second.ask(), second.ask(), second.ask(), second.ask()] == [False, False, True, True]


def test_a_rank_that_is_ahead_waits_for_rank_0(ranks: tuple[Rank, Rank]) -> None:
    first, second = ranks
    second.is_asked = True
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(second.ask()))
    thread.start()
    assert first.ask() is False
    thread.join()
    assert answers == [False]


def test_a_rank_that_waits_in_vain_decides_by_itself_and_says_so_once(
    ranks: tuple[Rank, Rank], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_agreement, "_LONGEST_WAIT_S", 0.01)
    _, second = ranks
    assert second.ask() is False
    second.is_asked = True
    assert second.ask() is True
    assert second.alone == 1


def test_nobody_waits_for_a_rank_0_that_has_ended(ranks: tuple[Rank, Rank]) -> None:
    first, second = ranks
    assert first.ask() is False
    first.agreement.close()
    assert [second.ask() for _ in range(5)] == [False] * 5
    assert second.alone == 0


@pytest.mark.parametrize(("world_size", "rank", "is_told"), [("4", "0", True), ("4", "1", False), ("2", "0", False)])
def test_on_several_hosts_without_a_process_group_a_note_says_that_each_decides_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world_size: str, rank: str, is_told: bool
) -> None:
    (tmp_path / wire.CONTROL).mkdir()
    names = {"WORLD_SIZE": world_size, "LOCAL_WORLD_SIZE": "2", "RANK": rank, "LOCAL_RANK": rank}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    notes: list[str] = []
    make_agreement(str(tmp_path), lambda: False, lambda _, text: notes.append(text))
    assert ["each host decides by itself" in note for note in notes] == [True] * is_told


def host(folder: Path, monkeypatch: pytest.MonkeyPatch, notes: list[str]) -> StopAgreement:
    """Return the first rank of one of two hosts, whose supervisors agree."""
    (folder / wire.CONTROL).mkdir(parents=True)
    (folder / wire.TRIAL_FILE).write_text('{"layout": {"nodes": 2}}')
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    asked = folder / wire.STOP_FILE
    return make_agreement(str(folder), asked.exists, lambda _level, text: notes.append(text))


def test_hosts_stop_at_the_latest_call_that_one_of_them_has_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_agreement, "_LONGEST_AGREEMENT_S", 120.0)
    notes: list[str] = []
    hosts = [host(tmp_path / name, monkeypatch, notes) for name in ("ahead", "behind")]
    assert [hosts[0].ask() for _ in range(5)] == [False] * 5
    assert [hosts[1].ask() for _ in range(2)] == [False] * 2
    answers: list[bool] = []
    for name in ("ahead", "behind"):
        (tmp_path / name / wire.STOP_FILE).write_text("Enough.")
    threads = [threading.Thread(target=lambda one=one: answers.append(one.ask())) for one in hosts]
    for thread in threads:
        thread.start()
    told = [tmp_path / name / wire.STOP_REACHED_FILE for name in ("ahead", "behind")]
    wait_until(lambda: all(path.exists() for path in told), "both calls")
    assert [path.read_text() for path in told] == ["5", "2"]
    for name in ("ahead", "behind"):
        wire.write_atomically(str(tmp_path / name / wire.STOP_AT_FILE), b"5")
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, True]
    assert [hosts[1].ask() for _ in range(3)] == [False, False, True]
    assert notes == []


def test_a_host_that_hears_nothing_of_the_others_decides_by_itself_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_agreement, "_LONGEST_AGREEMENT_S", 0.05)
    notes: list[str] = []
    alone = host(tmp_path / "alone", monkeypatch, notes)
    (tmp_path / "alone" / wire.STOP_FILE).write_text("Enough.")
    assert alone.ask() is True
    (note,) = notes
    assert "this host decides by itself" in note
