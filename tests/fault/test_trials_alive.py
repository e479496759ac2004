"""Trials that run are never called dead: damaged and deleted status files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_until
from tests.fault.local_trials import (
    COUNTS,
    begun,
    directory_of,
    finish,
    local,
    nothing_left,
    status,
    supervisor_gone,
    text,
)

pytestmark = pytest.mark.fault


def damage(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_bytes(b'{"state": "RUNN')


@pytest.mark.parametrize("names", [(wire.STATUS_FILE,), (wire.STATUS_FILE, wire.LOCK_FILE)])
def test_a_running_trial_with_a_damaged_status_goes_on_and_is_stopped_with_proof(
    backend: LocalBackend, home: Home, names: tuple[str, ...]
) -> None:
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    tree = processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial)))
    assert len(tree) == 2
    damage(directory_of(home, trial), *names)
    before = len(text(backend, ref, wire.METRICS))
    assert "status.json is damaged" in status(backend, ref).doubt
    assert local(home).submit(trial, Placement(), {}) == ref
    wait_until(lambda: len(text(backend, ref, wire.METRICS)) > before, "more metrics")
    assert processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial))) == tree
    receipt = backend.cancel(ref, 1.0)
    assert tree <= {*receipt.pids_ended, *receipt.pids_killed}
    assert nothing_left(str(directory_of(home, trial)))
    supervisor_gone(str(directory_of(home, trial)))
    assert status(backend, ref).state is TrialState.CANCELLED


def test_a_status_file_that_somebody_deletes_is_written_again(backend: LocalBackend, home: Home) -> None:
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    (directory_of(home, trial) / wire.STATUS_FILE).unlink()
    assert not status(backend, ref).state.is_final
    wait_until(lambda: status(backend, ref).state is TrialState.RUNNING, "the status, written again")
    backend.cancel(ref, 1.0)
    assert nothing_left(str(directory_of(home, trial)))


MAKES_A_FOLDER = """
import os
made = False
while not made:
    os.unlink("../status.json")
    try:
        os.makedirs("../status.json/deep")
        made = True
    except (FileExistsError, NotADirectoryError):
        print("the supervisor wrote its status in between")
"""


def test_a_folder_in_the_place_of_the_status_file_does_not_silence_the_supervisor(
    backend: LocalBackend, home: Home
) -> None:
    end = finish(backend, backend.submit(trial_of(home, MAKES_A_FOLDER), Placement(), {}))
    assert end.state is TrialState.SUCCEEDED


def test_the_status_says_what_was_ended_also_when_it_is_asked_again(backend: LocalBackend, home: Home) -> None:
    trial = trial_of(home, COUNTS)
    ref = backend.submit(trial, Placement(), {})
    begun(backend, ref)
    first = backend.cancel(ref, 60.0)
    second = local(home).cancel(ref, 60.0)
    assert first.pids_ended
    assert second.pids_ended == first.pids_ended
    assert "ended before" in second.note
    assert json.loads((directory_of(home, trial) / wire.STATUS_FILE).read_text())["receipt"]["left"] == []
