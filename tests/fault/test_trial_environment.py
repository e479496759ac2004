"""Whose variables a trial sees: its submitter's, never those of whoever started the manager."""

import json
import os
import subprocess
import sys

import psutil
import pytest

import jupyter_autotrain as at
from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home

pytestmark = pytest.mark.fault
DEADLINE_S = 240
PRINT_ALL = "import json, os\nprint(json.dumps(dict(os.environ)))"
SUBMIT = """
import sys, jupyter_autotrain as at
experiment = at.submit(sys.argv[1], name=sys.argv[2], **eval(sys.argv[3]))
assert experiment.wait(240) and experiment.state == "SUCCEEDED", experiment.why()
print(experiment.logs())
"""


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    end_manager(home)


def end_manager(home):
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=240)


def environment_of_a_trial(home, name, variables, **header):
    """Return what a trial prints as its environment when a process with these variables submits it."""
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **variables}
    environ["JUPYTER_AUTOTRAIN_HOME"] = str(home.root)
    command = [sys.executable, "-c", SUBMIT, PRINT_ALL, name, repr(header)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_trial_sees_its_submitters_variables_and_never_the_starters_which_the_manager_does_not_keep(home):
    starter = {"CANARY": "of the starter", "OMP_NUM_THREADS": "3", "AWS_SECRET_ACCESS_KEY": "k" * 40, "HF_TOKEN": "t"}
    first = environment_of_a_trial(home, "first", starter)
    assert "CANARY" not in first
    assert "AWS_SECRET_ACCESS_KEY" not in first
    assert first["OMP_NUM_THREADS"] == "3"
    variables = psutil.Process(manager.status(home).pid).environ()
    assert not {"CANARY", "HF_TOKEN"} & set(variables)
    second = environment_of_a_trial(home, "second", {"OMP_NUM_THREADS": "5", "LC_ALL": "C.UTF-8", "MINE": "x"})
    assert "CANARY" not in second
    assert (second["OMP_NUM_THREADS"], second["LC_ALL"]) == ("5", "C.UTF-8")
    assert "MINE" not in second


def test_pass_env_adds_names_and_env_and_secrets_go_before_them(home):
    variables = {"WANDB_PROJECT": "p", "SLURM_JOB_ID": "7", "SLURM_TOKEN": "t", "MY_TOKEN": "secret-value", "TZ": "UTC"}
    header = {"pass_env": ["WANDB_PROJECT", "SLURM_*"], "env": {"TZ": "Europe/Paris"}, "secrets": ["MY_TOKEN"]}
    seen = environment_of_a_trial(home, "more", variables, **header)
    assert (seen["WANDB_PROJECT"], seen["SLURM_JOB_ID"], seen["TZ"]) == ("p", "7", "Europe/Paris")
    assert "SLURM_TOKEN" not in seen
    assert seen["MY_TOKEN"] == "***"


def test_a_manager_started_anew_gives_a_retried_trial_the_same_variables(home, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    experiment = at.submit(PRINT_ALL + "\nraise SystemExit(1)", name="again", home=home)
    assert experiment.wait(DEADLINE_S)
    before = json.loads(experiment.logs(1))
    end_manager(home)
    monkeypatch.setenv("OMP_NUM_THREADS", "9")
    monkeypatch.setenv("CANARY", "of the second starter")
    experiment.retry()
    assert experiment.wait(DEADLINE_S)
    after = json.loads(experiment.logs(1))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= {"JUPYTER_AUTOTRAIN_TRIAL", "PWD"}
