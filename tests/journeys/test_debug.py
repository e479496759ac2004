"""`%autotrain debug` in a notebook: pdb in the ranks of a trial that stand at breakpoint() or at an exception."""

from __future__ import annotations

import time

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until

CELL = """\
%%autotrain {name}
resources: {{workers_per_node: 2}}
timeout: {timeout}
post_mortem: true
---
def double(x):
    y = x * 2
    breakpoint()
    return y + 1
value = double(rank + 10)
report(value=value)
if rank == 1:
    raise ValueError("a bad value")
"""


def stopped(experiment, what):
    """Return whether the notes tell that both ranks have stopped there."""
    warnings = " ".join(experiment.warnings())
    return all(f"Rank {rank} has stopped at {what}" in warnings for rank in (0, 1))


def test_pdb_is_opened_in_ranks_at_a_breakpoint_and_after_an_exception(notebook):
    notebook.run(CELL.format(name="looked-into", timeout="10m"))
    experiment = at.attach("looked-into")
    wait_until(lambda: stopped(experiment, "breakpoint()"), "the breakpoint")
    assert "Open it: %autotrain debug NAME 1. The trial's limit of time is paused." in " ".join(experiment.warnings())
    _, shown = notebook.run("%autotrain debug looked-into -c 'p x, y' -c '!y = y + 100' -c next -c where")
    assert "[rank 0: at this cell, line 9]\n(10, 20)\n" in shown
    assert "[rank 1: at this cell, line 9]\n(11, 22)\n" in shown
    assert "cell_runner" not in shown
    assert shown.endswith("Still stopped: ranks 0-1. Let them go on: %autotrain debug looked-into -c continue\n")
    _, shown = notebook.run("%autotrain stacks looked-into")
    assert "all ranks are in its debugger (this cell, line 9)" in shown
    _, shown = notebook.run("%autotrain debug looked-into 0 -c continue")
    assert "[rank 0: released]" in shown
    _, shown = notebook.run("%autotrain debug looked-into 1 -c continue")
    wait_until(lambda: "ValueError" in " ".join(experiment.warnings()), "the exception")
    _, shown = notebook.run("%autotrain debug looked-into 1 -c 'p value' -c quit")
    assert "\n123\n" in shown
    assert experiment.wait(timeout_s=240)
    [trial] = experiment.trials
    assert trial.reason.startswith("Rank 1 failed: ValueError: a bad value.")
    assert [row["value"] for row in experiment.metrics(["value"])] == [121]


def test_a_rank_that_does_not_stand_is_told(notebook):
    notebook.run("%%autotrain running\nimport time\nwhile not should_stop():\n    time.sleep(0.05)")
    experiment = at.attach("running")
    wait_until(lambda: "RUNNING" in str(experiment.trials), "its begin")
    assert "No debugger stands open in rank 0." in "\n".join(notebook.fails("%autotrain debug running 0"))
    experiment.stop()


@pytest.mark.long
def test_the_limit_of_time_is_paused_while_a_rank_stands(notebook):
    notebook.run(CELL.format(name="paused", timeout="30s"))
    experiment = at.attach("paused")
    wait_until(lambda: stopped(experiment, "breakpoint()"), "the breakpoint")
    time.sleep(40)  # longer than its limit
    assert experiment.state == "RUNNING"
    notebook.run("%autotrain debug paused -c continue")
    wait_until(lambda: "ValueError" in " ".join(experiment.warnings()), "the exception")
    notebook.run("%autotrain debug paused -c quit")
    assert experiment.wait(timeout_s=240)
    assert "Timeout" not in experiment.trials[0].reason
