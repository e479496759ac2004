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


@pytest.mark.long  # by default the one below, which has idle exits, too
@pytest.mark.parametrize(("users", "rounds"), [(2, 2), (1, 4), (3, 4)])
def test_everything_submitted_between_idle_exits_runs_and_the_store_stays_whole(users, rounds):
    told = soak("--rounds", rounds, "--users", users, "--trials", 2, "--calm")
    count = rounds * users
    told_of_all = f"experiments {count}, trials {2 * count}, points compared {120 * count}, idle exits {rounds}"
    assert told_of_all in told


def test_kills_pauses_and_deleted_files_lose_and_double_nothing():
    told = soak("--rounds", 2, "--users", 2, "--trials", 4)
    assert "idle exits 2" in told
