"""Tests that hosts' packages are compared before anything is sent, and that an environment is made there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import leftovers
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.manager.start import stopped
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until
from tests.labs.ssh_trials import kill_agents, supervisors
from tests.labs.wheels import write_wheel

OTHER = "/usr/bin/python3"
CODE = "import small\nprint(small.__version__, small.deeper.__version__, flush=True)\nreport(ok=1)\n"

pytestmark = [
    pytest.mark.usefixtures("patient_cells"),
    pytest.mark.skipif(
        not Path(OTHER).exists() or Path(OTHER).resolve() == Path(sys.executable).resolve(),
        reason=f"needs a second Python: {OTHER}",
    ),
]


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    yield made
    with stopped(made):
        pass


@pytest.fixture
def wheels(lab, scratch, tmp_path, monkeypatch):
    """Return a folder of wheels on the first host, which this process has installed."""
    folder = lab.hosts[0].path(lab.hosts[0].make_folder(scratch))
    site = tmp_path / "site-packages"
    for wheel in (
        write_wheel(folder, "deeper", "2.1"),
        write_wheel(folder, "small", "1.0", "import deeper", ["deeper>=2"]),
    ):
        zipfile.ZipFile(wheel).extractall(site)
    monkeypatch.syspath_prepend(str(site))
    return folder


@pytest.fixture(autouse=True)
def no_environments(lab):
    """Remove environments: the hosts outlive each test."""
    for one in lab.hosts:
        shutil.rmtree(one.home() / ".autotrain" / "environments", ignore_errors=True)


def backend(lab, *hosts):
    return {"type": "ssh", "hosts": list(hosts), "config_file": str(lab.config), "python": OTHER}


def test_what_hosts_lack_is_refused_before_anything_is_sent(lab, home, wheels):
    bundles = lab.hosts[0].home() / ".autotrain" / "bundles"
    before = sorted(bundles.glob("*"))
    with pytest.raises(BackendUnavailableError) as caught:
        at.submit(CODE, home=home, backend=backend(lab, "h1", "h2"))
    assert caught.value.found == "Not all that this cell needs is there: h1: missing small; h2: missing small."
    for host, line in zip(("h1", "h2"), caught.value.action.splitlines(), strict=False):
        assert line.startswith(f"{host}: {OTHER} -m ")  # which may be the operating system's own
        assert " -m pip install small==1.0" in line
    assert sorted(bundles.glob("*")) == before
    assert at.experiments(home=home) == []


def test_a_matching_environment_is_made_on_each_host_once(lab, home, wheels, scratch):
    env = {"PIP_FIND_LINKS": scratch, "PIP_NO_INDEX": "1"}
    experiment = at.submit(
        CODE, home=home, backend=backend(lab, "h1"), environment="match", env=env, trials=3, concurrency=3
    )
    experiment.wait()
    assert [trial.state for trial in experiment.trials] == [TrialState.SUCCEEDED] * 3, [
        (trial.reason, experiment.logs(trial.number)) for trial in experiment.trials
    ]
    assert len(environments_of(lab.hosts[0])) == 1
    wait_until(lambda: not supervisors(lab.hosts[0]), "the end of all that holds the environment")
    with Store.open(home) as store:
        (found,) = leftovers.find(home, store)
        assert found.names[0].startswith(f"environment {environments_of(lab.hosts[0])[0].name[:8]} on h1 (")
        (removed,) = leftovers.remove(home, store)
    assert removed.names == found.names
    assert environments_of(lab.hosts[0]) == []


def test_an_environment_is_made_on_while_the_agent_is_killed(lab, host, home, wheels, scratch, tmp_path):
    sdist = wheels / "slow-1.tar.gz"
    os.mkfifo(sdist)  # reading it waits until this test writes
    host.give(scratch)
    needs = tmp_path / "needs.txt"
    needs.write_text(f"slow @ file://{scratch}/slow-1.tar.gz\n")
    experiment = at.submit(
        "report(ok=1)", home=home, backend=backend(lab, "h1"), environment={"requirements": str(needs)}
    )
    wait_until(lambda: "Processing" in _stderr(experiment), "the installer")
    assert kill_agents(host)
    fd = os.open(sdist, os.O_WRONLY)  # waits until the installer reads it
    sdist.unlink()
    sdist.write_bytes(b"not an archive")  # for installers that read it twice
    with contextlib.suppress(BrokenPipeError):  # one that does has closed it already
        os.write(fd, b"not an archive")
    os.close(fd)
    experiment.wait()
    (trial,) = experiment.trials
    assert trial.state is TrialState.FAILED
    assert "pip install ended with exit code" in trial.reason
    assert environments_of(host) == []


def _stderr(experiment):
    with contextlib.suppress(AutotrainError):  # nothing has begun yet
        return experiment.logs(1, stream="stderr")
    return ""


def environments_of(host):
    return [path for path in (host.home() / ".autotrain" / "environments").iterdir() if path.is_dir()]
