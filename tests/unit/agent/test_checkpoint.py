from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_autotrain.agent.ranks.checkpoint import Checkpoint


def checkpoint(folder: Path, previous: Path | None = None, said: list[str] | None = None, rank: int = 0) -> Checkpoint:
    folder.mkdir(exist_ok=True)
    notes = [] if said is None else said
    return Checkpoint(str(folder), str(previous or ""), lambda _, text: notes.append(text), rank)


def test_the_newest_is_loaded_and_two_are_kept(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path / "a")
    for step in (1, 20, 3000):
        kept.save({"step": step}, step=step)
    assert kept.load() == {"step": 3000}
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_steps_are_counted_when_not_given_also_after_a_load(tmp_path: Path) -> None:
    first = checkpoint(tmp_path / "a")
    assert [Path(first.save(k)).name[-5:] for k in range(2)] == ["0.pkl", "1.pkl"]
    second = checkpoint(tmp_path / "b", tmp_path / "a")
    assert second.load() == 1
    assert Path(second.save("next")).name.endswith("2.pkl")


def test_without_any_the_default_comes_back(tmp_path: Path) -> None:
    assert checkpoint(tmp_path / "a", tmp_path / "nowhere").load("fresh") == "fresh"


def test_a_spoiled_file_is_passed_over_with_a_note(tmp_path: Path) -> None:
    said: list[str] = []
    kept = checkpoint(tmp_path / "a", said=said)
    kept.save("good", step=1)
    Path(kept.save("spoiled", step=2)).write_bytes(b"\x80\x05half")
    assert kept.load() == "good"
    assert "cannot be read" in said[0]


def test_what_cannot_be_pickled_leaves_the_former_one(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path / "a")
    kept.save("good", step=1)
    with pytest.raises(Exception, match=r"pickle|lambda"):
        kept.save(lambda: None, step=2)
    assert kept.load() == "good"


def test_own_files_of_the_attempt_before_are_copied_and_stay_whole(tmp_path: Path) -> None:
    former = checkpoint(tmp_path / "a")
    (Path(former.path) / "model.bin").write_text("old")
    again = checkpoint(tmp_path / "b", tmp_path / "a")
    (Path(again.path) / "model.bin").write_text("new")
    assert (Path(former.path) / "model.bin").read_text() == "old"


@pytest.mark.parametrize("has_links", [True, False])
def test_where_files_of_its_own_go_along_so_does_what_it_saved_also_over_attempts_that_save_nothing(
    tmp_path: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    first = checkpoint(tmp_path / "a")
    (Path(first.path) / "model.bin").write_text("model")
    for rank in range(2):
        checkpoint(tmp_path / "a", rank=rank).save(f"state of {rank}", step=7)
        checkpoint(tmp_path / "b", tmp_path / "a", rank=rank)
    assert [checkpoint(tmp_path / "c", tmp_path / "b", rank=rank).load() for rank in range(2)] == [
        "state of 0", "state of 1",
    ]  # fmt: skip
    assert not list(tmp_path.rglob("*.draft"))


def test_what_an_attempt_saves_counts_before_what_it_has_from_another_whatever_its_steps(tmp_path: Path) -> None:
    first = checkpoint(tmp_path / "a")
    (Path(first.path) / "model.bin").write_text("model")
    first.save("old", step=700)
    second = checkpoint(tmp_path / "b", tmp_path / "a")
    for step in (1, 2):
        second.save(f"new {step}", step=step)
    assert checkpoint(tmp_path / "c", tmp_path / "b").load() == "new 2"
    assert checkpoint(tmp_path / "d", tmp_path / "a").load() == "old"


def test_a_worker_that_begins_again_in_its_attempt_finds_what_that_saved(tmp_path: Path) -> None:
    first = checkpoint(tmp_path / "a")
    (Path(first.path) / "model.bin").write_text("model")
    first.save("old", step=700)
    checkpoint(tmp_path / "b", tmp_path / "a").save("new", step=1)
    assert checkpoint(tmp_path / "b", tmp_path / "a").load() == "new"


def test_each_rank_gets_back_what_it_saved_itself_and_one_that_saved_nothing_what_rank_0_did(tmp_path: Path) -> None:
    for rank in (0, 1):
        checkpoint(tmp_path / "a", rank=rank).save(f"of rank {rank}", step=3)
    again = [checkpoint(tmp_path / "b", tmp_path / "a", rank=rank) for rank in (0, 1, 2)]
    assert [kept.load() for kept in again] == ["of rank 0", "of rank 1", "of rank 0"]
    assert again[0].path == again[1].path
    assert list(Path(again[0].path).iterdir()) == []
