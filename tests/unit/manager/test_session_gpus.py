"""A session that holds its GPU only while a cell runs: the queue has it between cells."""

from __future__ import annotations

import json

import pytest

from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node
from jupyter_autotrain.core.spec import STANDARD, Resources


@pytest.fixture
def world(world):
    world.backend.inventory = Inventory((Node("here", 4.0, 8_000_000_000, (Accelerator(0, "GPU-a"),)),))
    return world


def said(world, session, turn, *, wanted):
    """Let the session say something of its GPU."""
    (job,) = [job for job in world.backend.jobs.values() if job.trial.experiment_id == session]
    job.metrics += json.dumps(["g", turn, wanted]).encode() + b"\n"
    world.step()
    return job.files.get("control/gpus")


def ended(world, experiment):
    (job,) = [job for job in world.backend.jobs.values() if job.trial.experiment_id == experiment]
    job.end()
    world.step()


def test_trials_run_between_its_cells_and_its_next_cell_runs_before_the_trials_that_wait(world):
    session = world.submit("lab", mode=STANDARD, resources=Resources(gpus=1))
    world.step()
    first = world.submit("first", resources=Resources(gpus=1))
    second = world.submit("second", resources=Resources(gpus=1))
    world.step()
    assert world.states(first) == ["WAITING"]
    assert said(world, session, 0, wanted=False) is None
    assert (world.states(first), world.states(second)) == (["RUNNING"], ["WAITING"])
    assert said(world, session, 1, wanted=True) is None
    assert "held by trial 1 of first@1" in world.store.block_reasons(session)[1]
    ended(world, first)
    assert world.states(second) == ["WAITING"]
    assert said(world, session, 1, wanted=True) == b"1"
    assert world.store.block_reasons(session) == {}
    assert said(world, session, 1, wanted=False) == b"1"
    assert world.states(second) == ["RUNNING"]
    assert world.states(session) == ["RUNNING"]


def test_a_manager_that_begins_anew_gives_the_gpu_to_one_of_them_alone(world):
    session = world.submit("lab", mode=STANDARD, resources=Resources(gpus=1))
    world.step()
    said(world, session, 0, wanted=False)
    trial = world.submit("first", resources=Resources(gpus=1))
    world.step()
    world.restart()
    world.step()
    assert said(world, session, 1, wanted=True) is None
    ended(world, trial)
    assert said(world, session, 1, wanted=True) == b"1"


def test_only_sessions_can_give_their_gpus_back(world):
    trial = world.submit("first", resources=Resources(gpus=1))
    world.step()
    said(world, trial, 0, wanted=False)
    second = world.submit("second", resources=Resources(gpus=1))
    world.step()
    assert world.states(second) == ["WAITING"]
