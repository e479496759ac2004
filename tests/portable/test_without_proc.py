"""Local trials, their manager and the client where Linux's interfaces are hidden, and `/proc` is an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain.agent import system

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("without_proc.sh")
CONTRACT = "tests/contract/test_backend_contract.py::TestLocal"
TESTS = (
    f"{CONTRACT}::test_cancel_ends_the_whole_tree_and_proves_it",
    f"{CONTRACT}::test_too_much_memory_ends_the_trial_and_is_the_reason",
    f"{CONTRACT}::test_one_poll_answers_for_all_in_order",
    "tests/fault/test_client_end_to_end.py::test_a_function_is_trained_and_everything_comes_back",
    "tests/fault/test_client_end_to_end.py::test_a_stop_ends_the_whole_tree_and_proves_it",
)
UNSHARE = ("unshare", "--mount", "--propagation", "private")


def _can_hide_proc() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/proc"], capture_output=True, check=False)
    return tried.returncode == 0


def test_trials_and_their_manager_read_nothing_below_proc(tmp_path: Path) -> None:
    if not _can_hide_proc():
        pytest.skip("hiding /proc needs root and unshare(1)")
    library = Path(psutil.__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(
        [*UNSHARE, "sh", str(SCRIPT), str(tmp_path), str(library), *command],
        env=os.environ | {system.PORTABLE_VARIABLE: "1"}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(TESTS)} passed" in done.stdout
