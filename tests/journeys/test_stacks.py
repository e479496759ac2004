"""`%autotrain stacks` in a notebook: where the ranks of a trial stand, while it goes on; and by itself at a stall."""

from __future__ import annotations

import re

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until

WAITING = """\
%%autotrain {name}
resources: {{workers_per_node: 3}}
stall: {stall}
---
import pathlib, signal, time
free = pathlib.Path({free!r})
def wait_for_data():
    (free.parent / f"begun-{{rank}}").touch()
    while not free.exists():
        time.sleep(0.05)
def compute():
    (free.parent / f"begun-{{rank}}").touch()
    while not free.exists():
        time.sleep(0.05)
if rank == 2:
    signal.signal(signal.SIGURG, lambda *_: print("the handler of the cell"))
report(begun=rank)
wait_for_data() if rank == 1 else compute()
"""


def test_the_ranks_of_a_running_trial_are_told_by_where_they_stand_and_it_goes_on(notebook, tmp_path):
    free = tmp_path / "free"
    notebook.run(WAITING.format(name="standing", stall="null", free=str(free)))
    experiment = at.attach("standing")
    wait_until(lambda: len([*tmp_path.glob("begun-*")]) == 3, "the ranks")
    wait_until(lambda: "RUNNING" in str(experiment.trials), "its state")
    _, shown = notebook.run("%autotrain stacks standing")
    assert re.match(r"standing: rank 0 is in this cell, line 1\d, rank 1 is in this cell, line \d+\.\n", shown), shown
    assert "in wait_for_data" in shown
    assert "in compute" in shown
    assert "cell_runner" not in shown
    assert "rank 2: It did not answer" in shown
    assert "the cell handles SIGURG itself" in shown
    free.touch()
    assert experiment.wait(timeout_s=240)
    assert experiment.state == "SUCCEEDED"
    assert "the handler of the cell" in experiment.logs(rank=2)
    assert "No trial of standing runs now." in "\n".join(notebook.fails("%autotrain stacks standing"))


def test_a_trial_that_reports_nothing_for_long_tells_where_its_ranks_stand(notebook, tmp_path):
    free = tmp_path / "free"
    notebook.run(WAITING.format(name="stalled", stall="1s", free=str(free)))
    experiment = at.attach("stalled")
    noted = re.compile(r"Nothing was reported for 1 s: .*rank.*")
    wait_until(lambda: any(map(noted.search, experiment.warnings())), "the note")
    free.touch()
    assert experiment.wait(timeout_s=240)
    assert experiment.state == "SUCCEEDED"
