"""Ordinary use over several idle times: notebooks keep their handles, the manager leaves and comes, all of it runs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.fault
SOAK = Path(__file__).parents[1] / "soak" / "soak.py"


def soak(*options):
    argv = [sys.executable, str(SOAK), *map(str, options)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("users", [1, 3])
def test_everything_submitted_between_idle_exits_runs_and_the_store_stays_whole(users):
    told = soak("--rounds", 4, "--users", users, "--trials", 2, "--calm")
    assert f"experiments {4 * users}, trials {8 * users}, points compared {480 * users}, idle exits 4" in told


def test_kills_pauses_and_deleted_files_lose_and_double_nothing():
    told = soak("--rounds", 2, "--users", 2, "--trials", 10)
    assert "idle exits 2" in told
