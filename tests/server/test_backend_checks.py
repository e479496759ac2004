"""Checks of backends over REST: begun, followed step by step, cancelled, bounded."""

from __future__ import annotations

import threading

import pytest

from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.server.check_runner import CheckRunner
from jupyter_autotrain.server.problems import ProblemError
from tests.server.jupyter import problem_of
from tests.server.test_actions import until


def test_a_check_is_followed_to_its_metric(server):
    begun = server.ask("POST", "/backends/local/checks", json={})
    assert begun.status_code == 202, begun.text
    path = f"/checks/{begun.json()['check']}"
    found = until(lambda: (answer := server.get(path))["state"] == "done" and answer)
    assert found["good"] is True, found
    assert [step["name"] for step in found["steps"]][-2:] == ["metric back", "clean"]
    assert server.get(path, after=len(found["steps"]))["steps"] == []


def test_what_is_not_there_is_not_checked(server):
    assert problem_of(server.ask("POST", "/backends/nowhere/checks", json={}))["status"] == 404
    assert problem_of(server.ask("GET", f"/checks/{'0' * 32}"))["status"] == 404
    for text in ("..%2f..%2fetc", "x" * 33, "%00"):
        assert problem_of(server.ask("GET", f"/checks/{text}"))["status"] == 400
    assert problem_of(server.ask("POST", "/backends/local/checks", json={"nodes": ["n"] * 65}))["status"] == 400


class SlowHost:
    """Steps that wait for the test."""

    def __init__(self):
        self.goes_on = threading.Event()
        self.cleaned = threading.Event()

    def steps(self, should_stop):
        try:
            yield CheckStep("gpu1", "connect", True, "connected")
            assert self.goes_on.wait(120)
            yield CheckStep("gpu1", "tiny trial", True, "started")
            yield CheckStep("gpu1", "clean", True, "nothing is left")
        finally:
            self.cleaned.set()


def test_a_slow_host_is_seen_step_by_step_and_can_be_cancelled():
    host = SlowHost()
    runner = CheckRunner()
    check = runner.find(runner.start("lab", host.steps))
    until(lambda: check.steps)
    assert (check.state, [step.name for step in check.steps]) == ("running", ["connect"])
    check.cancelled.set()
    assert check.state == "cancelled"
    host.goes_on.set()
    check.thread.join(120)
    assert host.cleaned.is_set()
    assert (check.ended_as, len(check.steps)) == ("cancelled", 2)


def test_so_many_checks_run_at_once_and_so_many_are_kept():
    host = SlowHost()
    runner = CheckRunner()
    first = [runner.start("lab", host.steps) for _ in range(4)]
    with pytest.raises(ProblemError, match="4 checks run already"):
        runner.start("lab", host.steps)
    host.goes_on.set()
    for check_id in first:
        runner.find(check_id).thread.join(120)
    for _ in range(20):
        runner.find(runner.start("lab", host.steps)).thread.join(120)
    with pytest.raises(ProblemError, match="no check"):
        runner.find(first[0])
