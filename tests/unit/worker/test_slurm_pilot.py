"""Which trials a pilot job of Slurm takes."""

from __future__ import annotations

import pytest

from jupyter_autotrain.worker.slurm_pilot import fits


@pytest.mark.parametrize(
    ("timeout_s", "left_s", "expected"),
    [(600.0, 700.0, True), (600.0, 610.0, False), (None, 1900.0, True), (None, 1700.0, False)],
)
def test_a_trial_is_taken_only_when_it_ends_before_the_pilot(
    timeout_s: float | None, left_s: float, *, expected: bool
) -> None:
    assert fits(timeout_s, left_s, 3600.0) is expected
