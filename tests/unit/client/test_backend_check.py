"""The check of a backend that has no steps of its own: probe, discover, a tiny trial, its metric, nothing left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from jupyter_autotrain.backends.debug import DebugBackend
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.backend import Probe
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.profile import Profile


def test_every_backend_is_checked_by_a_trial_whose_metric_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    steps = list(check_backend(Profile("debug", "debug")))
    assert [step.name for step in steps] == ["probe", "discover", "tiny trial", "metric back", "clean"]
    assert all(step.is_good for step in steps)
    assert not list(tmp_path.iterdir())


def test_a_backend_that_cannot_be_used_is_told_and_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DebugBackend, "probe", lambda _: Probe(False, "It is asleep."))
    (step,) = check_backend(Profile("debug", "debug"))
    assert (step.name, step.is_good, step.text) == ("probe", False, "It is asleep.")


def test_a_backend_that_cannot_be_made_is_told() -> None:
    (step,) = check_backend(Profile("lab", "moonbase"))
    assert (step.is_good, step.text) == (False, "There is no backend 'moonbase'.")


def test_steps_of_its_own_are_in_the_place_of_a_probe_and_end_at_the_first_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [CheckStep("", "reach", True, "it answers"), CheckStep("", "log in", False, "no", "log in again")]
    monkeypatch.setattr(DebugBackend, "check_steps", lambda _: iter(steps), raising=False)
    assert list(check_backend(Profile("debug", "debug"))) == steps
    steps[1] = CheckStep("", "log in", True, "as ada")
    names = [step.name for step in check_backend(Profile("debug", "debug"))]
    assert names == ["reach", "log in", "tiny trial", "metric back", "clean"]
