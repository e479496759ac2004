"""A long-running pod takes each trial once, and none when it ends."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes_pod import pilot
from jupyter_autotrain.backends.kubernetes_pod.pilot import Pilot

FILES = json.dumps({"trial.json": base64.b64encode(b"{}").decode()}).encode()


def test_a_pod_that_ends_refuses_a_trial_that_comes_at_that_moment(tmp_path: Path) -> None:
    assert Pilot({}, 0.0, str(tmp_path))._may_end()
    with pytest.raises(OSError, match="ends"):
        pilot.accept("e-1-1", FILES, str(tmp_path))
    assert not (tmp_path / pilot.NEXT).exists()


def test_a_pod_to_which_a_trial_has_come_at_the_last_moment_goes_on(tmp_path: Path) -> None:
    pilot.accept("e-1-1", FILES, str(tmp_path))
    assert not Pilot({}, 0.0, str(tmp_path))._may_end()
    pilot.accept("e-1-1", FILES, str(tmp_path))  # again, as by a manager that was restarted
    assert (tmp_path / pilot.RAN).read_text() == "e-1-1\n"


def test_a_trial_that_was_taken_is_not_refused_for_the_end_of_the_pod(tmp_path: Path) -> None:
    pilot.accept("e-1-1", FILES, str(tmp_path))
    (tmp_path / pilot.NEXT).rename(tmp_path / pilot.CURRENT)
    assert Pilot({}, 0.0, str(tmp_path))._may_end()
    pilot.accept("e-1-1", FILES, str(tmp_path))
