"""The state of an experiment is what its trials do now."""

import pytest

from jupyter_autotrain.agent.states import TrialState, experiment_state


@pytest.mark.parametrize(
    ("trials", "closed", "state"),
    [
        ([], False, "WAITING"),
        (["WAITING"], False, "WAITING"),
        (["PREPARING", "WAITING"], False, "RUNNING"),
        (["SUCCEEDED", "RUNNING"], True, "RUNNING"),
        (["SUCCEEDED"], False, "RUNNING"),
        (["FAILED", "WAITING"], True, "WAITING"),
        (["FAILED", "SUCCEEDED"], True, "SUCCEEDED"),
    ],
)
def test_it_runs_only_while_a_trial_runs_or_the_next_is_about_to_be_made(trials, closed, state):
    states = [TrialState(trial) for trial in trials]
    assert experiment_state(states, closed=closed, stop_requested=False) == state
