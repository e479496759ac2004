"""Tests of how long the program that starts the ranks may go on when none of them runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from jupyter_autotrain.agent.launchers.launchers import Launcher
from jupyter_autotrain.agent.supervisor import exit_causes, launch
from jupyter_autotrain.agent.supervisor.launch import Launch
from jupyter_autotrain.agent.supervisor.worker_process import LaunchedWorker


@pytest.mark.parametrize(
    ("is_elastic", "exit_status", "goes_on"), [(True, 256, True), (True, 0, False), (False, 256, False)]
)
def test_only_a_launcher_that_starts_failed_ranks_again_is_given_time_for_it(
    monkeypatch: pytest.MonkeyPatch, is_elastic: bool, exit_status: int, goes_on: bool
) -> None:
    monkeypatch.setattr(launch, "_LINGER_S", 0.0)
    program = Launch(cast("Launcher", SimpleNamespace(is_elastic=is_elastic)))
    ranks = cast("list[LaunchedWorker]", [SimpleNamespace(exit_status=0), SimpleNamespace(exit_status=exit_status)])
    assert program.is_running(ranks) is goes_on


RULE = "-" * 74
DOUBLE = "=" * 83
LOGS = (
    (("[mpiexec@h1] match_arg: bad x", "[mpiexec@h1] main: error"), "[mpiexec@h1] match_arg: bad x"),
    (("ssh: Could not resolve hostname h2", "[mpiexec@h1] Launch proxy failed."), "ssh: Could not resolve hostname h2"),
    ((RULE, "There are not enough slots to satisfy the 99", "slots asked for:", "", "  true", RULE),
     "There are not enough slots to satisfy the 99 slots asked for:"),
    ((RULE, "WARNING: No preset parameters", "for the device.", RULE, "[h1:42] *** Socket closed", "[h1] x"),
     "[h1:42] *** Socket closed"),
    ((DOUBLE, "=   BAD TERMINATION", "=   EXIT CODE: 9", DOUBLE, "[proxy] failed"), "BAD TERMINATION EXIT CODE: 9"),
    (("", " \0"), ""),
)  # fmt: skip


@pytest.mark.parametrize(("lines", "cause"), LOGS)
def test_of_what_mpiexec_says_the_cause_is_shown_which_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: tuple[str, ...], cause: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launcher").write_text("\n".join(lines) + "\n")
    assert exit_causes.first_paragraph("launcher") == cause


CHAINED = (
    "Traceback (most recent call last):", '  File "run.py", line 1', "torch.distributed.DistNetworkError: port in use.",
    "", "The above exception was the direct cause of the following exception:", "",
    "Traceback (most recent call last):",
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection has failed.",
)  # fmt: skip
CHILD_FAILED = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", DOUBLE, "k.py FAILED", RULE,
    "Root Cause (first observed failure):", "  traceback : Signal 9 (SIGKILL) received by PID 15942", DOUBLE,
)  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (CHAINED, "torch.distributed.DistNetworkError: port in use"),
        (CHILD_FAILED, "traceback : Signal 9 (SIGKILL) received by PID 15942"),
        (("usage: torchrun [-h]", "torchrun: error: unknown argument --x"), "torchrun: error: unknown argument --x"),
        (("", RULE), ""),
    ],
)
def test_of_what_torchrun_says_the_first_exception_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: tuple[str, ...], cause: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launcher").write_text("\n".join(lines) + "\n")
    assert exit_causes.first_exception("launcher") == cause
