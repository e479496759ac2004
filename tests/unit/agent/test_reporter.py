from __future__ import annotations

import json
import math
import tempfile
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.ranks.reporter import Reporter
from jupyter_autotrain.agent.trial.redact import Redactor


@pytest.fixture
def report(tmp_path: Path) -> Reporter:
    return Reporter(str(tmp_path))


def frames(tmp_path: Path) -> list[list[object]]:
    return [json.loads(line) for line in (tmp_path / "metrics").read_text().splitlines()][1:]


def points(tmp_path: Path) -> list[tuple[object, object]]:
    return [(frame[1], frame[3]) for frame in frames(tmp_path) if frame[0] == "m"]


def notes(tmp_path: Path) -> list[object]:
    return [frame[3] for frame in frames(tmp_path) if frame[0] == "n"]


class Tensor:
    """Has `.item()` as a torch tensor has."""

    def __init__(self, value: float, size: int = 1) -> None:
        self.value = value
        self.size = size

    def item(self) -> float:
        if self.size != 1:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1, 1), (True, 1), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), 1),
        (np.array([2.5]), 2.5), (Tensor(0.25), 0.25), (float("nan"), None), (np.float64("nan"), None),
        (Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25), (10**30, 1e30),
    ],
)  # fmt: skip
def test_numbers_of_all_kinds_are_kept(report: Reporter, tmp_path: Path, value: object, kept: object) -> None:
    report(v=value)
    assert points(tmp_path) == [(0, {"v": kept})]
    assert notes(tmp_path) == []


@pytest.mark.parametrize(
    "value", [float("inf"), -np.inf, "high", None, [1.0], Tensor(1, size=2), 1j, 10**400, object()]
)
def test_what_is_not_one_finite_number_becomes_one_warning(
    report: Reporter, tmp_path: Path, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        report(good=1.0, bad=value)
    assert points(tmp_path) == [(0, {"good": 1.0}), (1, {"good": 1.0}), (2, {"good": 1.0})]
    assert len(notes(tmp_path)) == 1
    assert "bad" in str(notes(tmp_path)[0])
    assert capsys.readouterr().err.count("autotrain:") == 1


def test_steps_may_stay_but_not_go_back(report: Reporter, tmp_path: Path) -> None:
    report(step=5, a=1)
    report(step=5, b=2)
    report(step=4, a=3)
    report(a=4)
    assert points(tmp_path) == [(5, {"a": 1}), (5, {"b": 2}), (6, {"a": 4})]
    assert "may not go back" in str(notes(tmp_path)[0])


@pytest.mark.parametrize("step", ["two", 1.5, None.__class__, float("nan"), [1]])
def test_a_step_that_is_no_whole_number_is_refused_with_a_note(report: Reporter, tmp_path: Path, step: object) -> None:
    report(step=step, a=1)  # type: ignore[arg-type]
    assert points(tmp_path) == []
    assert "whole number" in str(notes(tmp_path)[0])


def test_a_numpy_step_is_a_step(report: Reporter, tmp_path: Path) -> None:
    report(step=np.int64(3), a=1)  # type: ignore[arg-type]
    assert points(tmp_path) == [(3, {"a": 1})]


NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name not in {"self", "step"})
VALUES = st.floats(allow_infinity=False)


@settings(max_examples=40)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_any_names_and_any_finite_values_are_read_back_exactly(values: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Reporter(folder)(**values)
        (point,) = points(Path(folder))
    assert point[1] == {name: None if math.isnan(value) else value for name, value in values.items()}


def test_a_folder_that_is_gone_does_not_disturb_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Reporter(str(tmp_path / "nowhere"))
    report(loss=1.0)
    report(loss=2.0)
    assert "cannot be kept" in capsys.readouterr().err


def test_a_frame_cut_short_by_a_full_disk_does_not_spoil_the_next(
    report: Reporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:7]))
    report(loss=1.0)
    monkeypatch.undo()
    report(loss=2.0)
    last = (tmp_path / "metrics").read_text().splitlines()[-1]
    assert json.loads(last)[3] == {"loss": 2.0}


def test_a_second_process_goes_on_in_the_same_file(report: Reporter, tmp_path: Path) -> None:
    report(a=1)
    Reporter(str(tmp_path))(b=2)
    lines = (tmp_path / "metrics").read_text().splitlines()
    assert [line[:4] for line in lines] == ['["v"', '["m"', '["m"']


def test_notes_are_redacted(tmp_path: Path) -> None:
    Reporter(str(tmp_path), lambda text: text.replace("hunter2", "***")).note("info", "key hunter2")
    assert notes(tmp_path) == ["key ***"]


def test_values_without_a_name_are_refused_with_the_way_to_write_them(
    report: Reporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(0.5)  # type: ignore[arg-type]
    report(1, 0.5)
    report({"loss": 0.5})  # type: ignore[arg-type]
    report(3)
    report()
    assert points(tmp_path) == []
    assert notes(tmp_path) == ["report(0.5): a value without a name was not kept; name each metric: report(loss=0.5)"]
    report.invalid.flush()
    assert frames(tmp_path)[-1][4] == 5
    assert "name each metric" in capsys.readouterr().err


def test_named_values_beside_an_unnamed_one_are_kept(report: Reporter, tmp_path: Path) -> None:
    report(2, 0.5, loss=0.25)
    assert points(tmp_path) == [(2, {"loss": 0.25})]
    assert len(notes(tmp_path)) == 1


def test_a_report_refused_in_every_step_is_counted_not_repeated(report: Reporter, tmp_path: Path) -> None:
    for _ in range(1234):
        report(acc="high")
    report.invalid.flush()
    report.invalid.flush()
    counts = [frame[4] if len(frame) > 4 else 1 for frame in frames(tmp_path)]
    assert counts == [1, 10, 100, 1000, 1234]
    assert len(set(notes(tmp_path))) == 1


def test_endless_kinds_of_refused_reports_end_in_one_note(report: Reporter, tmp_path: Path) -> None:
    for index in range(500):
        report(**{f"m{index}": "x"})
    report.invalid.flush()
    assert len(set(notes(tmp_path))) == 51
    assert frames(tmp_path)[-1][4] == 450


def test_a_refused_value_that_is_long_is_told_short(report: Reporter, tmp_path: Path) -> None:
    report(acc=np.arange(10_000))
    assert len(str(notes(tmp_path)[0])) < 160
    assert "\n" not in str(notes(tmp_path)[0])


def test_times_of_reports_do_not_jump_with_the_wall_clock(
    tmp_path: Path, report: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(step=1, loss=1.0)
    wall_s = time.time()
    monkeypatch.setattr(time, "time", lambda: wall_s + 30 * 86_400)
    report(step=2, loss=1.0)
    first_s, second_s = (float(str(frame[2])) for frame in frames(tmp_path))
    assert 0 <= second_s - first_s < 3600


def test_a_secret_in_the_name_of_a_metric_is_masked(tmp_path: Path) -> None:
    report = Reporter(str(tmp_path), Redactor(["hunter2-hunter2"]).text)
    report(step=1, **{"loss of hunter2-hunter2": 0.5, b"hunter2-hunter2".hex(): 1})
    assert points(tmp_path) == [(1, {"loss of ***": 0.5, "***": 1})]


def test_each_metric_counts_its_own_steps(report: Reporter, tmp_path: Path) -> None:
    for batch in range(100):
        report(step=batch, loss=1 / (batch + 1))
    for epoch in range(3):
        report(step=epoch, val_acc=epoch / 10)
        report(step=100 + epoch, loss=0.0)
    kept = [(step, values) for step, values in points(tmp_path) if "val_acc" in values]
    assert kept == [(0, {"val_acc": 0.0}), (1, {"val_acc": 0.1}), (2, {"val_acc": 0.2})]
    assert notes(tmp_path) == []


def test_a_metric_that_goes_back_is_dropped_alone_and_named(report: Reporter, tmp_path: Path) -> None:
    report(step=5, loss=1.0)
    report(step=4, loss=2.0, acc=0.5)
    assert points(tmp_path) == [(5, {"loss": 1.0}), (4, {"acc": 0.5})]
    assert "loss of step 4 comes after its step 5" in str(notes(tmp_path))


def test_a_run_that_goes_on_repeats_no_step_of_any_metric(report: Reporter, tmp_path: Path) -> None:
    report(step=0, val_acc=0.5)
    for batch in range(3000):  # val_acc is far from the end of the file
        report(step=batch, loss=0.1)
    again = Reporter(str(tmp_path))
    for batch in (2998, 2999, 3000):
        again(step=batch, loss=0.1)
    for epoch in (0, 1):
        again(step=epoch, val_acc=0.5)
    steps = [(step, *values) for step, values in points(tmp_path)]
    assert steps[-2:] == [(3000, "loss"), (1, "val_acc")]
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize(("name", "why"), [("a\ud800", "a lone surrogate"), ("n" * 1001, "1001 characters")])
def test_a_name_that_cannot_be_kept_costs_no_other_metric_of_its_report(
    report: Reporter, tmp_path: Path, name: str, why: str
) -> None:
    report(**{name: 1, "loss": 2})
    assert points(tmp_path) == [(0, {"loss": 2})]
    (note,) = notes(tmp_path)
    assert f"a metric's name has {why}" in str(note)
