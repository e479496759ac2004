"""How long the program that starts the ranks may go on when none of them runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from jupyter_autotrain.worker import launch
from jupyter_autotrain.worker.launch import Launch
from jupyter_autotrain.worker.launched_worker import LaunchedWorker
from jupyter_autotrain.worker.launchers import Launcher


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
