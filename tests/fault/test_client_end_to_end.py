"""The Python way in, through the real manager and the real local backend."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

import jupyter_autotrain as at
from jupyter_autotrain import cli, manager
from jupyter_autotrain.core.home import Home
from tests.fault.local_trials import has_ended

pytestmark = pytest.mark.fault
DEADLINE_S = 240
SECRET = "s3cret-value-of-the-user"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("autotrain") / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=240)


@pytest.fixture(autouse=True)
def environment(home, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def until(condition):
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the condition never came"
        time.sleep(0.01)


def square(number):
    return number * number


@at.trial(objective="maximize score", returns=["result"])
def learn():
    for step in range(4):
        report(step=step, score=square(step))  # noqa: F821 - a name of every trial
    sys.stdout.write("learned\n")
    return {"weights": [1, 2]}


def test_a_function_is_trained_and_everything_comes_back(tmp_path):
    experiment = learn.submit(name="learning")
    assert experiment.wait(DEADLINE_S)
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert [row["value"] for row in experiment.metrics(["score"])] == [0, 1, 4, 9]
    assert experiment.best.value == 9
    assert experiment.logs() == "learned\n"
    assert experiment.load("result") == {"weights": [1, 2]}
    assert experiment.pull(tmp_path) == ["result.pkl"]
    assert experiment.why() == []
    assert at.attach("learning").id == experiment.id == at.experiments()[0].id


def test_a_plain_script_needs_no_ipython():
    script = """
import sys
import jupyter_autotrain as at
experiment = at.submit("for step in range(3): report(loss=1 / (step + 1))", name="plain", objective="minimize loss")
print(experiment.wait(240), experiment.state, experiment.best.value, "IPython" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "SUCCEEDED", str(1 / 3), "False"], done.stderr
    assert len(at.attach("plain").metrics()) == 3


STUBBORN = """
import subprocess, sys, time
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
report(pid=child.pid)
while True: time.sleep(1)
"""


def test_a_stop_ends_the_whole_tree_and_proves_it():
    experiment = at.submit(STUBBORN, name="stubborn")
    until(experiment.metrics)
    pid = int(experiment.metrics()[0]["value"])
    receipt = experiment.stop(grace_s=0.5)
    assert pid in {*receipt.pids_ended, *receipt.pids_killed}
    assert receipt.pids_left == ()
    assert has_ended(pid)
    assert experiment.state == "CANCELLED"
    assert "nothing is left" in str(receipt)
    assert "ended before" in str(experiment.stop())


def test_a_failed_trial_is_tried_again_as_a_new_attempt():
    experiment = at.submit("raise ValueError('no luck')", name="unlucky")
    assert experiment.wait(DEADLINE_S)
    assert experiment.state == "FAILED"
    assert any("no luck" in sentence for sentence in experiment.why())
    experiment.retry()
    assert experiment.wait(DEADLINE_S)
    assert experiment.trials[0].attempt == 2
    assert [move.state for move in experiment.store.state_changes(experiment.id)].count("FAILED") == 2


SLOW = """
import time
for step in range(60):
    report(step=step, loss=step)
    time.sleep(0.02)
"""


def test_a_killed_manager_loses_and_doubles_nothing_while_a_client_waits(home):
    experiment = at.submit(SLOW, name="survivor")
    until(lambda: len(experiment.metrics()) > 5)
    os.kill(manager.status(home).pid, signal.SIGKILL)
    assert experiment.wait(DEADLINE_S)
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert [row["step"] for row in experiment.metrics()] == list(range(60))
    assert experiment.trials[0].attempt == 1


def test_a_secret_reaches_the_trial_and_no_file(home, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", SECRET)
    source = "import os\nreport(length=len(os.environ['MY_TOKEN']))"
    experiment = at.submit(source, name="hush", secrets=["MY_TOKEN"])
    assert experiment.wait(DEADLINE_S)
    assert experiment.metrics()[0]["value"] == len(SECRET), experiment.why()
    # By another process: one that opens and closes the store's file gives up its own locks on it.
    found = subprocess.run(["grep", "-rlF", SECRET, home.root], capture_output=True, text=True, check=False)
    assert (found.stdout, found.returncode) == ("", 1)


def test_two_submissions_at_once_from_two_processes_get_two_names():
    script = "import jupyter_autotrain as at; print(at.submit('report(x=1)', name='twin').name)"
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = sorted(process.communicate()[0].strip() for process in both)
    assert first in {"twin", "twin@1"}  # as it is called once there is a second one
    assert second == "twin@2"
    for name in ("twin", "twin@1"):
        assert at.attach(name).wait(DEADLINE_S)


def test_bad_input_is_told_in_clauses_and_keeps_nothing():
    before = len(at.experiments())
    for header in (
        {"trails": 3},
        {"backend": "moon"},
        {"secrets": ["NOT_SET_ANYWHERE"]},
        {"search": {"x": "unifrom(0, 1)"}},
    ):
        (key,) = header
        with pytest.raises(at.AutotrainError, match=key):
            at.submit("report(x=1)", **header)
    assert len(at.experiments()) == before


STEERING = """
print("\\x1b]0;owned\\x07plain \\x1b[31mred\\x1b[0m")
raise ValueError("\\x1b]52;c;aGk=\\x07why\\x1b[2J")
"""


@pytest.mark.parametrize("verb", ["logs", "show", "why", "ls", "wait"])
def test_no_verb_lets_a_trial_steer_the_terminal(verb, capsys):
    experiment = at.submit(STEERING, name="steering")
    experiment.wait(DEADLINE_S)
    cli.main([verb, *([] if verb == "ls" else ["steering"])])
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert told.out
    assert "\x1b" not in f"{experiment!r}{experiment.why()}"
