"""Submitters killed at any instant: what is in the store has its code, what is not leaves nothing behind."""

import random
import signal
import subprocess
import sys
import time

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store

pytestmark = pytest.mark.fault

SUBMITTER = """
import sys
from pathlib import Path
from jupyter_autotrain import manager
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec

manager.ensure = manager.notify = lambda *arguments: True

def write(folder):
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.py").write_text("pass")
    return Bundle()

while True:
    print(send(Home(Path(sys.argv[1])), ExperimentSpec("a", Bundle()), write, {}).id, flush=True)
"""


def test_a_submitter_killed_at_any_instant_leaves_whole_experiments_and_no_draft(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    choose = random.Random(11)
    acknowledged = []
    kills = 8
    for _ in range(kills):
        argv = [sys.executable, "-c", SUBMITTER, str(home.root)]
        submitter = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        acknowledged.append(submitter.stdout.readline().strip())
        due_s = time.monotonic() + choose.uniform(0.0, 0.1)
        while time.monotonic() < due_s:
            acknowledged.append(submitter.stdout.readline().strip())
        submitter.send_signal(signal.SIGKILL)
        acknowledged += submitter.communicate()[0].split()
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.setattr(manager, "notify", lambda home, message=None: True)
    send(home, ExperimentSpec("a", Bundle()), lambda folder: folder.mkdir() or Bundle(), {})
    assert list(home.drafts.iterdir()) == []
    with Store.open(home) as store:
        kept = [record.id for record in store.experiments(10**9)]
    assert set(acknowledged) <= set(kept)
    assert len(kept) <= len(acknowledged) + kills + 1
    for experiment_id in kept[1:]:
        assert len(list(home.bundle(experiment_id).iterdir())) == 5
