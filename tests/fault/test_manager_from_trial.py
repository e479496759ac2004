"""A manager that was started from inside a trial serves its home, whatever becomes of that trial."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress

import psutil
import pytest

import jupyter_autotrain as at
from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home

pytestmark = pytest.mark.fault
DEADLINE_S = 240.0
LIMITS = {"memory": "2GB", "cpus": 1}

INNER = """
import time
for step in range(40):
    report(step=step, acc=step)
    time.sleep(0.05)
"""


def until(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def homes(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    homes = Home(tmp_path / "outer"), Home(tmp_path / "inner")
    yield homes
    pids = [manager.status(home).pid for home in homes]
    for home in homes:
        shutil.rmtree(home.root, ignore_errors=True)
    for pid in filter(None, pids):
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()


def outer_source(inner, end):
    return f"""
import time
from pathlib import Path
import jupyter_autotrain as at
from jupyter_autotrain.core.home import Home
at.submit({INNER!r}, name="inner", home=Home(Path({str(inner.root)!r})))
report(sent=1)
{end}
"""


@pytest.mark.parametrize(
    ("end", "resources"),
    [
        pytest.param("", {}, id="ends", marks=pytest.mark.long),
        pytest.param("raise ValueError('over')", {}, id="fails", marks=pytest.mark.long),
        pytest.param("time.sleep(600)", {}, id="stopped", marks=pytest.mark.long),
        pytest.param("", LIMITS, id="limited, ends"),
        pytest.param("raise ValueError('over')", LIMITS, id="limited, fails", marks=pytest.mark.long),
        pytest.param("time.sleep(600)", LIMITS, id="limited, stopped"),
    ],
)
def test_the_end_of_a_trial_touches_neither_the_manager_it_started_nor_that_ones_trials(homes, end, resources):
    outer, inner = homes
    experiment = at.submit(outer_source(inner, end), name="outer", home=outer, resources=resources)
    until(experiment.metrics, "the inner experiment is sent")
    (handle,) = at.experiments(home=inner)
    until(handle.metrics, "the inner trial runs")
    identity = manager.ensure(inner)
    if end.startswith("time"):
        receipt = experiment.stop(grace_s=0.2)
        assert identity.pid not in {*receipt.pids_ended, *receipt.pids_killed}
        assert receipt.pids_left == ()
    assert experiment.wait(DEADLINE_S)
    assert identity.alive
    assert handle.wait(DEADLINE_S)
    assert handle.state == "SUCCEEDED", handle.why()
    assert [row["step"] for row in handle.metrics()] == list(range(40))
    assert manager.ensure(inner) == identity
    assert os.sched_getaffinity(identity.pid) == os.sched_getaffinity(0)
