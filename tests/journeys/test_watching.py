"""Who only watches goes on seeing points after the manager was killed, without any command."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until
from tests.journeys.kernel import Kernel

REPORTS = (
    "import time\nstep = 0\nwhile not should_stop():\n    report(step=step, acc=1)\n    step += 1\n    time.sleep(0.05)"
)
HANDLE = f"import jupyter_autotrain as at\nexperiment = at.submit({REPORTS!r}, name='watched')"
READS = """
import time
before = len(experiment.{read})
deadline_s = time.monotonic() + 240
while len(experiment.{read}) == before and time.monotonic() < deadline_s:
    time.sleep(0.1)
print("more" if len(experiment.{read}) > before else "no more")
"""


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    if pid := manager.status(home).pid:
        psutil.Process(pid).kill()


@pytest.fixture
def kernel(home, tmp_path):
    kernel = Kernel(home, tmp_path / "watching.ipynb")
    yield kernel
    kernel.run("%autotrain stop watched")
    kernel.close()


def kill_manager(home):
    pid = manager.status(home).pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid), "the end of the manager")


def points(store):
    (record,) = store.experiments(1)
    return store.points(record.id, limit=1 << 62)


def test_a_live_view_alone_brings_a_killed_manager_back(kernel, home):
    kernel.run(f"%%autotrain watched\n---\n{REPORTS}")
    with Store.open(home) as store:
        wait_until(lambda: points(store), "the first point")
        kill_manager(home)
        before = len(points(store))
        wait_until(lambda: len(points(store)) > before, "points after the manager was killed")


def test_reading_a_handle_alone_brings_a_killed_manager_back(kernel, home):
    kernel.run(HANDLE)
    with Store.open(home) as store:
        wait_until(lambda: points(store), "the first point")
    for read in ("metrics()", "series('acc').get(1, ((),))[0]"):
        kill_manager(home)
        assert "\nmore" in f"\n{kernel.run(READS.format(read=read))}", read
