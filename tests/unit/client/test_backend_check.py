"""The check of a backend that has no steps of its own: probe, discover, a tiny trial, its metric, nothing left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from jupyter_autotrain.backends.debug import DebugBackend
from jupyter_autotrain.client import backend_check
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.backend import JobRef, Probe
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError


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


def test_what_a_place_keeps_of_the_tiny_trial_is_named_and_what_was_there_before_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = iter([["an old environment"], ["an old environment", "Job x in namespace lab"], ["an old environment"]])
    monkeypatch.setattr(DebugBackend, "leftovers", lambda *_: next(told), raising=False)
    monkeypatch.setattr(DebugBackend, "remove_leftovers", lambda *_: [], raising=False)
    *_, clean = check_backend(Profile("debug", "debug"))  # looked again until it was gone
    assert (clean.name, clean.is_good) == ("clean", True)
    monkeypatch.setattr(backend_check, "_GONE_S", 0.0)
    looks = iter([[], ["Job x in namespace lab"]])
    monkeypatch.setattr(DebugBackend, "leftovers", lambda *_: next(looks), raising=False)
    *_, clean = check_backend(Profile("debug", "debug"))
    assert (clean.name, clean.is_good, clean.text) == ("clean", False, "this is left: Job x in namespace lab")


def test_a_place_that_may_not_be_looked_at_is_not_called_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> list[str]:
        raise BackendError("You may not list secrets in the namespace lab.")

    monkeypatch.setattr(DebugBackend, "leftovers", forbidden, raising=False)
    monkeypatch.setattr(DebugBackend, "remove_leftovers", forbidden, raising=False)
    *_, clean = check_backend(Profile("debug", "debug"))
    assert "whether all of it is gone is not known: You may not list secrets" in clean.text


def test_folders_of_the_tiny_trial_at_its_place_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    there: dict[str, int] = {"another": 1}

    def submit(self: DebugBackend, trial: TrialSpec, *more: object) -> JobRef:
        there[trial.experiment_id] = 1
        return real(self, trial, *more)

    real = DebugBackend.submit
    monkeypatch.setattr(DebugBackend, "submit", submit)
    monkeypatch.setattr(DebugBackend, "experiments_there", lambda _: there, raising=False)
    removed = lambda _, names: [there.pop(name) for name in names]  # noqa: E731 - short
    monkeypatch.setattr(DebugBackend, "remove_experiments", removed, raising=False)
    *_, clean = check_backend(Profile("debug", "debug"))
    assert clean.is_good
    assert there == {"another": 1}
