"""A verb without a name means the newest of this notebook; in a shell the newest of the home, and it says which."""

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.spec import Origin
from jupyter_autotrain.errors import UnknownExperimentError

DONE = (TrialState.PREPARING, TrialState.RUNNING, TrialState.SUCCEEDED)
VERBS = ["best", "stop", "load", "export", "retry", "wait", "logs", "why", "show", "pull"]


@pytest.mark.parametrize("verb", VERBS)
def test_in_a_notebook_without_experiments_no_verb_takes_another_ones(terminal, add, verb):
    add("digits", (DONE, 0.5))
    terminal.origin = Origin("/home/ada/new.ipynb", "s1")
    with pytest.raises(UnknownExperimentError, match="This notebook has submitted no experiment"):
        terminal.run(verb)
    assert terminal.noted == []


@pytest.mark.parametrize("verb", ["best", "why", "show", "stop", "wait"])
def test_in_a_shell_each_verb_says_which_it_takes(terminal, add, verb):
    add("digits", (DONE, 0.5))
    add("mnist", (DONE, 0.5))
    terminal.run(verb)
    terminal.run(verb, "-2")
    terminal.run(verb, "digits")
    assert terminal.noted == [
        "Taking mnist, the newest of this home.\n",
        "Taking digits, number 2 from the newest of this home.\n",
    ]


def test_json_is_alone(terminal, add):
    add("digits", (DONE, 0.5))
    assert terminal.json("best")["value"] == 0.5
    assert terminal.noted == []
