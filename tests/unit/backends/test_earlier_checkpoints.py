"""Which checkpoints of a trial's attempt before there are, in the home and where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_autotrain.backends.earlier_checkpoints import are_there, in_home
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

NEXT = TrialSpec("e1", 1, 2, resume_attempt=1)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The home's folder of a first attempt's checkpoints."""
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


def test_a_place_that_never_saw_the_attempt_has_none_and_a_silent_one_says_nothing() -> None:
    def fails_by(error: Exception) -> Mapping[str, int]:
        raise error

    assert are_there(lambda: {"first.pt": 1})
    assert not are_there(dict)
    assert not are_there(lambda: fails_by(BackendError("There is no job e1-1-1.")))
    with pytest.raises(BackendUnavailableError):
        are_there(lambda: fails_by(BackendUnavailableError("gpu1 does not answer.")))
