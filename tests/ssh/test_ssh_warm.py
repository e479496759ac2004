"""Trials on a host that begin from one process there, which has made their imports."""

from __future__ import annotations

import json

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import NodePlacement, Placement
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.labs.ssh_lab import LabHost
from tests.labs.ssh_trials import LabBackend, LabBackends, read_on

CELL = """
import decimal, os
above = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]
print(above, len(os.environ.get("TOKEN", "")))
"""


def said(backend: LabBackend, home: Home, number: int, secrets: dict[str, str] | None = None) -> list[str]:
    given = secrets or {}
    trial = trial_of(home, CELL, experiment_id=f"e{number}", secrets=tuple(given))
    ref = backend.submit(trial, Placement((NodePlacement("h1"),)), given)
    assert wait_for_end(backend, ref).state is TrialState.SUCCEEDED
    return read_on(backend, ref, wire.STDOUT, b"").decode().split()


def test_they_begin_from_one_process_and_a_secret_stays_with_its_trial(
    make: LabBackends, home: Home, host: LabHost, scratch: str
) -> None:
    backend = make(home, reuse=True, reuse_idle=60.0, workdir=scratch)
    said(backend, home, 1, {"TOKEN": "xyzzy"})
    folder = host.path(f"{scratch}/warm")

    def imports() -> list[str]:
        return [name for file in folder.glob("*/loaded") for name in json.loads(file.read_text())["imports"]]

    wait_until(lambda: imports() == ["decimal"], "the imports")
    first, length = said(backend, home, 2, {"TOKEN": "xyzzy"})
    assert length == "5"
    assert said(backend, home, 3) == [first, "0"]
    (lock,) = folder.glob("*/lock")
    assert json.loads(lock.read_text())["supervisor"][0] == int(first)
    host.run("kill", first)
    wait_until(lambda: not list(folder.glob("*/*")), "the end of the warm process, and of its folder")


def test_without_the_option_none_is_started(make: LabBackends, home: Home, host: LabHost, scratch: str) -> None:
    said(make(home, workdir=scratch), home, 1)
    assert not host.path(f"{scratch}/warm").exists()
