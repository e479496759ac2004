"""A real manager process is killed right after a decision: the next one carries the decision out."""

from __future__ import annotations

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.tuner import EarlyStopOptions
from jupyter_autotrain.testing import wait_until

pytestmark = pytest.mark.fault
until = wait_until

SECOND_IS_WORSE = """
    import os, time
    number = int(os.getcwd().split("/")[-3])
    for step in range(100_000):
        report(step=step, acc=1.0 / number)
        time.sleep(0.01 if number == 1 else 0.05)
        if should_stop() or (number == 1 and os.path.exists("../stop_now")):
            break
"""


def test_an_early_stop_decided_right_before_the_manager_is_killed_still_happens(served):
    options = EarlyStopOptions(min_trials=1)
    served.submit(
        "e1", SECOND_IS_WORSE, trials=2, concurrency=2, objective=Objective("acc"), early_stop="median",
        early_stop_options=options,
    )  # fmt: skip
    until(lambda: served.store.end_decisions("e1"), "the decision")
    served.kill()
    (end,) = served.store.end_decisions("e1").values()
    assert (2, 1) in served.store.end_decisions("e1")
    (served.home.trial("e1", 2, 1) / "control" / "stop").unlink(missing_ok=True)  # as if it had not been written yet
    manager.ensure(served.home)
    until(lambda: served.store.trial("e1", 2).state.is_final, "the stop")
    trial = served.store.trial("e1", 2)
    assert FinalState(trial.state, trial.reason) == end
    assert end.state is TrialState.EARLY_STOPPED
    (served.home.trial("e1", 1, 1) / "stop_now").touch()
    until(lambda: served.store.experiment("e1").state.is_final, "the end of the experiment")
    assert served.states("e1") == ["SUCCEEDED", "EARLY_STOPPED"]


def test_why_right_after_the_death_of_a_manager_tells_what_a_trial_waits_for(served):
    served.submit("e1", "import time\nreport(acc=1)\ntime.sleep(600)", secrets=("NO_SUCH_SECRET",))
    until(lambda: served.store.block_reasons("e1"), "the reason")
    served.kill()
    waits, no_manager = manager.explain(served.store, served.home, "exp")
    assert waits.startswith("Trial 1 waits for its secret NO_SUCH_SECRET")
    assert no_manager.startswith("The manager is not running.")


STOPPED = """
    import os, time
    number = int(os.getcwd().split("/")[-3])
    LOOKS = False
    step = 0
    while not (LOOKS and should_stop()):
        report(step=step, acc=1.0 / number)
        checkpoint.save({"step": step})
        step += 1
        time.sleep(0.01 if number == 1 else 0.05)  # one that is ahead of the other is not compared with it
    time.sleep(1.5)
    report(step=step, acc=9)
"""
LOOKS = STOPPED.replace("LOOKS = False", "LOOKS = True")


@pytest.mark.parametrize(("code", "last"), [(STOPPED, 0.5), (LOOKS, 9.0)])
def test_a_trial_that_is_stopped_early_keeps_what_it_reported_and_only_one_that_looks_ends_itself(served, code, last):
    served.submit(
        "e1", code, trials=2, concurrency=2, objective=Objective("acc"), early_stop="median",
        early_stop_options=EarlyStopOptions(min_trials=1),
    )  # fmt: skip
    until(lambda: served.store.end_decisions("e1"), "the decision")
    until(lambda: served.store.trial("e1", 2).state.is_final, "the stop")
    trial = served.store.trial("e1", 2)
    assert (trial.state, trial.value) == (TrialState.EARLY_STOPPED, last)
    assert trial.reason.startswith("stopped early at step")
    assert list((served.home.trial("e1", 2, 1) / "checkpoints").iterdir())
