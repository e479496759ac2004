"""Curves of what trials use, from files that a trial can write to."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.views.trial_plots import usage_json


def write(home: Home, attempt: int, text: str) -> None:
    path = home.trial("e", 1, attempt) / wire.USAGE
    path.parent.mkdir(parents=True)
    path.write_text(text)


def trial(attempt: int) -> TrialRecord:
    return TrialRecord("e", 1, TrialState.RUNNING, {}, attempt=attempt)


def test_each_attempt_has_columns_and_gpus_that_nothing_is_known_of_are_null(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(home, 1, "[1.0, 98.5, 1000, null, null]\n[2.0, 101, 2000, null, null]\n")
    write(home, 3, "[1.0, 10, 500, null, 7]\n[2.0, 20, 600, 50.0, 8]\n")
    assert usage_json(home, trial(3)) == {
        "attempts": [
            {
                "attempt": 1, "seconds": [1.0, 2.0], "cpu_percent": [98.5, 101], "memory_bytes": [1000, 2000],
                "gpu_percent": None, "gpu_memory_bytes": None,
            },
            {
                "attempt": 3, "seconds": [1.0, 2.0], "cpu_percent": [10, 20], "memory_bytes": [500, 600],
                "gpu_percent": [None, 50.0], "gpu_memory_bytes": [7, 8],
            },
        ]
    }  # fmt: skip


def test_a_supervisor_that_was_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    lines = [f"[{second}, 1, 1, null, null]" for second in (1, 9, 1, 3)]
    write(Home(tmp_path), 1, "\n".join(lines))
    (attempt,) = usage_json(Home(tmp_path), trial(1))["attempts"]  # type: ignore[misc, union-attr]
    assert attempt["seconds"] == [1, 9, 10]  # type: ignore[call-overload, index] # the last line is being written


def test_what_a_trial_writes_there_itself_is_passed_over(tmp_path: Path) -> None:
    wrong = [
        "[1, 1, 1]", "{}", "x", "[1, NaN, 1, null, null]", "[Infinity, 1, 1, null, null]", "[1, -1, 1, null, null]",
        '["1", 1, 1, null, null]', "[true, 1, 1, null, null]", "[1, 1, null, 1, 1]", "[1" + "0" * 400 + ", 1, 1, 1, 1]",
        "[" * 100_000, "[1, 1, 1, [], null]",
    ]  # fmt: skip
    write(Home(tmp_path), 1, "\n".join([*wrong, "[2, 1, 1, null, null]\n"]))
    (attempt,) = usage_json(Home(tmp_path), trial(1))["attempts"]  # type: ignore[misc, union-attr]
    assert attempt["seconds"] == [2]  # type: ignore[call-overload, index]


def test_trials_without_the_file_or_with_something_else_there_have_no_curve(tmp_path: Path) -> None:
    directory = Home(tmp_path).trial("e", 1, 1)
    directory.mkdir(parents=True)
    assert usage_json(Home(tmp_path), trial(2)) == {"attempts": []}
    (directory / wire.USAGE).symlink_to("/dev/zero")
    assert usage_json(Home(tmp_path), trial(2)) == {"attempts": []}
