"""The verb `mcp`: what a user may allow an agent, and with which limits."""

from __future__ import annotations

import pytest

from jupyter_autotrain.client.agent_request import Grant, Permissions
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs import agents
from jupyter_autotrain.verbs.grammar import grammar

LIMITS = "--trials 20 --time 2h --places local,cluster"


def served(line):
    found = []

    class Command:
        serve = staticmethod(found.append)

    agents.mcp(Command, grammar()["mcp"].parse_args(line.split()))
    [permissions] = found
    return permissions


@pytest.mark.parametrize(
    ("line", "permissions"),
    [
        ("", Permissions()),
        (LIMITS, Permissions()),
        ("--allow stop", Permissions(may_stop=True)),
        (f"--allow submit,stop {LIMITS}", Permissions(Grant(20, 7200.0, ("local", "cluster")), may_stop=True)),
    ],
)
def test_an_agent_only_reads_unless_the_user_allows_more(line, permissions):
    assert served(line) == permissions


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("--allow submit", "no limit by --trials, --time, --places"),
        ("--allow submit --trials 3 --places local", "no limit by --time"),
        ("--allow submit --trials -3 --time 2h --places local", "positive --trials"),
        ("--allow submit --trials 3 --time soon --places local", "'soon' is not a time"),
        ("--allow everything", "there is no action 'everything'"),
    ],
)
def test_submitting_needs_all_three_limits(line, found):
    with pytest.raises(AutotrainError, match=found):
        served(line)


def test_a_notebook_serves_no_agent(terminal):
    with pytest.raises(AutotrainError, match="A notebook serves no agent"):
        terminal.run("mcp")
