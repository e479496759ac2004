"""Which checkpoints of a trial's attempt before there are, in the home and where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.backends.trial_content import are_there, from_last_saved, in_home
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

NEXT = TrialSpec("e1", 1, 2, resume_attempt=1)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return the home's folder of a first attempt's checkpoints."""
    folder = Home(tmp_path).trial("e1", 1, 1) / wire.CHECKPOINTS
    folder.mkdir(parents=True)
    (folder / "first.pt").touch()
    return folder


def test_those_in_the_home_are_what_a_trial_goes_on_from(saved: Path, tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path))
    assert in_home(context, NEXT) == saved
    assert in_home(context, replace(NEXT, resume_attempt=None)) is None


def test_a_part_of_them_is_none(saved: Path, tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path))
    kept = KeptCheckpoints(JobRef("lab", "e1-1-1"), {"checkpoints/last.pt": 5})
    kept.write(saved.parent)
    (saved / "last.pt.part").touch()
    assert in_home(context, NEXT) is None
    kept.without("checkpoints/last.pt").write(saved.parent)
    assert in_home(context, NEXT) == saved


def test_attempts_without_any_hide_none_before_them(saved: Path, tmp_path: Path) -> None:
    home = Home(tmp_path)
    context = BackendContext(home)
    ranks = home.trial("e1", 1, 2) / wire.CHECKPOINTS / "rank-1"
    ranks.mkdir(parents=True)
    (ranks / "step-000000000007.pkl.draft").touch()  # the attempt ended while it was saved
    (home.trial("e1", 1, 3) / wire.CHECKPOINTS).mkdir(parents=True)
    fifth = replace(NEXT, attempt=5, resume_attempt=4)
    assert from_last_saved(fifth, context).resume_attempt == 1
    assert from_last_saved(fifth, context, lambda attempt: attempt == 3).resume_attempt == 3
    (ranks / "step-000000000007.pkl").touch()
    assert from_last_saved(fifth, context).resume_attempt == 2


def test_a_folder_that_cannot_be_looked_at_has_none(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: str) -> list[tuple[str, int]]:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(files, "walk", refuse)
    assert in_home(BackendContext(Home(tmp_path)), NEXT) is None


def test_where_no_attempt_has_any_a_trial_stays_as_it_is(tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path))
    for trial in (NEXT, TrialSpec("e1", 1, 1)):
        assert from_last_saved(trial, context) == trial


def test_a_place_that_never_saw_the_attempt_has_none_and_a_silent_one_says_nothing() -> None:
    def fails_by(error: Exception) -> Mapping[str, int]:
        raise error

    assert are_there(lambda: {"first.pt": 1})
    assert not are_there(dict)
    assert not are_there(lambda: {"rank-1/step-000000000007.pkl.draft": 1})
    assert not are_there(lambda: fails_by(BackendError("There is no job e1-1-1.")))
    with pytest.raises(BackendUnavailableError):
        are_there(lambda: fails_by(BackendUnavailableError("gpu1 does not answer.")))
