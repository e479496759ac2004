"""Ending processes: what still lives when its time is over was ended by force, whatever it does next."""

from __future__ import annotations

import subprocess

from jupyter_autotrain.agent.supervisor.termination import terminate


def test_a_process_that_gives_up_when_it_may_start_no_others_was_ended_by_force() -> None:
    process = subprocess.Popen(["sleep", "1000"])
    living = {process.pid}

    def forbid_new_processes() -> None:
        living.clear()  # a shell ends when it cannot fork

    termination = terminate(lambda: set(living), 0.0, before_kill=forbid_new_processes)
    assert termination.killed == {process.pid}
    assert process.wait() == -9
    assert termination.to_json()["ended"] == []


def test_nothing_is_forbidden_where_nothing_is_left_to_kill() -> None:
    forbidden: list[bool] = []
    termination = terminate(set, 1.0, before_kill=lambda: forbidden.append(True))
    assert (termination.killed, termination.left, forbidden) == (set(), set(), [])
