"""Trials on a full disk say so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_until
from tests.fault.local_trials import directory_of, finish, local, nothing_left

pytestmark = pytest.mark.fault


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small disk needs root on Linux")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this container may not mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file:
        block = b"\0" * 65536
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


EATS = """
    import sys, time
    report(loss=1)
    print("begun", flush=True)
    with open("ballast", "wb", buffering=0) as file:
        {}
"""
FULL = {
    "an error": "while True: file.write(bytes(65536))",
    "a print": "\n".join(
        ["try:", *("    " * 3 + line for line in ("while True: file.write(bytes(65536))",)),
         "        except OSError: pass", "        for k in range(10_000): print(k, 'x' * 100)"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("deed", FULL.values(), ids=FULL)
def test_a_trial_that_fills_the_disk_says_so_and_not_only_an_exit_code(small_disk: Path, deed: str) -> None:
    home = Home(small_disk)
    backend = local(home)
    trial = trial_of(home, EATS.format(deed))
    ref = backend.submit(trial, Placement(), {})
    wait_until(lambda: nothing_left(str(directory_of(home, trial))) or _is_full(small_disk), "a full disk")
    wait_until(lambda: not processes.marked(wire.TRIAL_VARIABLE, str(directory_of(home, trial))), "the worker's end")
    end = finish(backend, ref)
    assert _is_full(small_disk)
    assert end.state is TrialState.FAILED
    assert "No space left on device" in end.reason
    assert "exit code" not in end.reason


def test_what_a_full_disk_took_from_a_trial_that_ended_well_is_told(small_disk: Path) -> None:
    code = """
        try:
            with open("ballast", "wb", buffering=0) as file:
                while True: file.write(bytes(65536))
        except OSError:
            with open("ballast2", "wb", buffering=0) as file:
                while True:
                    try: file.write(b"x")
                    except OSError: break
        for k in range(10_000): report(k=k)
        model = bytes(100_000)
    """
    backend = local(Home(small_disk))
    ref = backend.submit(trial_of(Home(small_disk), code, returns=("model",)), Placement(), {})
    end = finish(backend, ref)
    assert end.state is TrialState.SUCCEEDED
    assert "returns: 'model' was not saved: [Errno 28] No space left on device" in end.reason
    assert "Some reports were lost: No space left on device" in end.reason


def _is_full(disk: Path) -> bool:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize < 65536


def test_a_trial_that_cannot_start_on_a_full_disk_names_the_disk(small_disk: Path) -> None:
    home = Home(small_disk)
    trial = trial_of(home, "")
    fill(small_disk)
    disk = rf"the disk of {directory_of(home, trial)} is full \([\d.]+ k?B of 2\.1 MB free"
    with pytest.raises(BackendError, match=disk):
        local(home).submit(trial, Placement(), {})
