"""The trials that wait for pilots, and the decisions about pilots."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.pool.waiting import RAN, TAKEN, WaitingTrials, give

ENTRY = b'{"code": "pass"}'
FEW = st.integers(0, 20)


@pytest.fixture
def waiting(tmp_path: Path) -> WaitingTrials:
    made = WaitingTrials(tmp_path)
    made.open()
    return made


def together(calls: list[Callable[[], object]]) -> list[object]:
    """Return what calls give, or raise, that are made at the same moment."""
    barrier = threading.Barrier(len(calls))

    def call(one: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return one()
        except OSError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def test_a_trial_that_comes_when_a_pilot_ends_is_refused_or_keeps_it(tmp_path: Path) -> None:
    waiting = WaitingTrials(tmp_path)
    for number in range(200):
        waiting.open()
        refusal, is_closed = together([partial(give, str(tmp_path), f"{number}", ENTRY), waiting.close])
        assert is_closed is isinstance(refusal, OSError)
        assert waiting.withdraw(f"{number}") is not is_closed


def test_a_trial_is_given_once_wherever_it_is_by_then(tmp_path: Path, waiting: WaitingTrials) -> None:
    """As after the answer of the giving was lost: while it waits, while it runs, after its end, and by many at once."""

    def again() -> None:
        together([partial(give, str(tmp_path), "a", ENTRY)] * 4)

    again()
    assert waiting.names() == ["a"]
    Path(waiting.file("a")).rename(tmp_path / f"{TAKEN}a")
    again()
    (tmp_path / RAN).write_text("a\n")
    (tmp_path / f"{TAKEN}a").unlink()
    again()
    assert waiting.names() == []
    assert waiting.close()
    again()  # it was taken: it is not refused because the pilot ends


def test_a_trial_of_which_a_part_got_lost_is_refused(tmp_path: Path, waiting: WaitingTrials) -> None:
    with pytest.raises(ValueError, match="Unterminated string"):
        give(str(tmp_path), "a", ENTRY[:-4])
    assert waiting.names() == []


def test_no_pilot_sees_a_part_of_an_entry(waiting: WaitingTrials) -> None:
    entry = json.dumps({"code": "x" * 100_000}).encode()
    seen: set[str] = set()
    is_done = threading.Event()

    def put_all() -> None:
        for number in range(100):
            waiting.put(f"{number:03}", entry)
            assert waiting.withdraw(f"{number:03}")
        is_done.set()

    def look() -> None:
        while not is_done.is_set():
            seen.update(waiting.names())

    together([put_all, look])
    assert {name for name in seen if len(name) != 3} == set()


def test_of_those_who_want_a_trial_one_gets_it(tmp_path: Path, waiting: WaitingTrials) -> None:
    waiting.put("a", ENTRY)
    takers = [partial(Path(waiting.file("a")).rename, tmp_path / f"{number}") for number in range(4)]
    found = together([*takers, partial(waiting.withdraw, "a")])
    assert sum(one is True or isinstance(one, Path) for one in found) == 1


@given(waiting=FEW, free=FEW, busy=FEW, most=FEW)
def test_as_many_pilots_are_started_as_trials_need_and_the_pool_may_have(
    waiting: int, free: int, busy: int, most: int
) -> None:
    living = free + busy
    missing = rules.missing_pilots(waiting, free, living, most)
    assert missing >= 0
    assert living + missing <= max(living, most)
    assert missing <= max(0, waiting - free)  # none for which there is no trial
    assert missing == waiting - free or living + missing >= most or free >= waiting  # else one more is of use


@pytest.mark.parametrize(
    ("failures", "broken", "expected"),
    [((), (), None), (("a", "b"), (), None), (("a", "b", "c"), (), "c"), ((), ("d",), "d"), (("a",) * 3, ("d",), "d")],
)
def test_trials_fail_with_pilots_that_fail_again_and_again_or_cannot_begin(
    failures: tuple[str, ...], broken: tuple[str, ...], expected: str | None
) -> None:
    assert rules.fatal_end(failures, broken) == expected


@pytest.mark.parametrize(
    ("timeout_s", "left_s", "whole_s", "expected"),
    [
        (600.0, 700.0, 3600.0, True), (600.0, 610.0, 3600.0, False), (None, 1900.0, 3600.0, True),
        (None, 1700.0, 3600.0, False), (None, float("inf"), float("inf"), True),
        (600.0, float("inf"), float("inf"), True),
    ],
)  # fmt: skip
def test_a_trial_is_taken_only_when_it_ends_before_the_pilot(
    timeout_s: float | None, left_s: float, whole_s: float, *, expected: bool
) -> None:
    assert rules.fits(timeout_s, left_s, whole_s) is expected
