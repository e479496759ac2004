"""Logs of jobs that are cut, doubled or come in another order: what is kept of them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.agent.pods import frames
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.log_channel import judging
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.backends.log_channel.log_reading import LogReader
from jupyter_autotrain.core.backend import JobRef

METRICS = "".join(f'["m",{step},0.0,{{"loss":{step}}}]\n' for step in range(40))


def lines_of(text: str) -> list[str]:
    found = []
    for offset in range(0, len(text), 50):
        found += [line.rstrip("\n") for line in frames.encode("metrics", offset, text[offset : offset + 50].encode())]
    return found


def kept(folder: Path, *parts: tuple[list[str], bool]) -> str:
    trial = CollectedTrial(folder)
    reader = LogReader(trial)
    for lines, is_whole in parts:
        reader.keep(lines, is_whole=is_whole)
    return (trial.directory / "metrics").read_text()


@given(st.randoms(use_true_random=False), st.integers(0, 30))
def test_a_log_that_is_cut_doubled_and_reordered_gives_every_metric_once(random: object, tail: int) -> None:
    whole = lines_of(METRICS)
    mixed = whole + whole[: len(whole) // 2]
    random.shuffle(mixed)  # type: ignore[attr-defined] # of random.Random
    with TemporaryDirectory() as folder:
        assert kept(Path(folder), (whole[-tail:], False), (mixed, False), (whole[tail:], True)) == METRICS


def test_what_never_comes_is_marked_where_it_is_missing_and_nothing_else_is_lost(tmp_path: Path) -> None:
    whole = lines_of(METRICS)
    found = kept(tmp_path, (whole[:3], False), (whole[5:], True))
    assert len(found) == len(METRICS)
    assert "bytes are missing here" in found
    assert found.endswith('["m",39,0.0,{"loss":39}]\n')


def test_a_gap_in_the_end_of_a_log_asks_for_the_whole_and_is_not_marked_yet(tmp_path: Path) -> None:
    whole = lines_of(METRICS)
    reader = LogReader(CollectedTrial(tmp_path))
    assert reader.keep(whole[:3], is_whole=False) == (True, False)
    assert reader.keep(whole[5:], is_whole=False) == (False, True)
    assert reader.keep(whole, is_whole=False) == (True, False)


def test_lines_that_are_no_frames_are_kept_for_messages(tmp_path: Path) -> None:
    reader = LogReader(CollectedTrial(tmp_path))
    reader.keep(["Running entrypoint", *lines_of("x\n"), "python3: not found"], is_whole=True)
    assert reader.printed == ["Running entrypoint", "python3: not found"]


WELL = {"state": "SUCCEEDED", "reason": ""}
RUNS = {"state": "RUNNING", "reason": ""}
FAILED = {"state": "FAILED", "reason": "Rank 1 failed: no data", "failed_s": 1.0}
FOR_NODE_1 = {"state": "CANCELLED", "reason": "Ended because the trial has ended on node 1: it is lost."}
TOLD_TO_END = {"state": "PREEMPTED", "reason": "The supervisor got SIGTERM.", "failed_s": 2.0}


@pytest.mark.parametrize(
    ("own", "lost", "state", "reason"),
    [
        ((WELL, WELL), "", "SUCCEEDED", ""),
        ((FOR_NODE_1, RUNS), "its host is gone", "LOST", "On node 1: its host is gone"),
        ((TOLD_TO_END, None), "its host is gone", "LOST", "On node 1: its host is gone"),
        ((TOLD_TO_END, FAILED), "", "FAILED", "Rank 1 on node 1 failed: no data"),
        ((FAILED, RUNS), "it ended", "FAILED", "Rank 1 on node 0 failed: no data. Of node 1 no end was heard."),
    ],
)
def test_the_end_of_a_trial_is_that_of_the_node_that_explains_it(
    own: tuple[Status | None, ...], lost: str, state: str, reason: str
) -> None:
    found = judging.ended(JobRef("lab", "e1-1-1"), own, lost)
    assert found is not None
    assert (found["state"], found["reason"]) == (state, reason)


def test_a_trial_has_not_ended_while_a_node_may_still_tell_its_end() -> None:
    assert judging.ended(JobRef("lab", "e1-1-1"), (WELL, RUNS)) is None
    assert judging.ended(JobRef("lab", "e1-1-1"), (RUNS, None), "its host is gone") is None
