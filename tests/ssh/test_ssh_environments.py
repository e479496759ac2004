"""What hosts have is compared before anything is sent, and a virtual environment like the notebook's is made there."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.manager.start import stopped
from jupyter_autotrain.testing.wheels import write_wheel

OTHER = "/usr/bin/python3"
CODE = "import small\nprint(small.__version__, small.deeper.__version__, flush=True)\nreport(ok=1)\n"

pytestmark = pytest.mark.skipif(
    not Path(OTHER).exists() or Path(OTHER).resolve() == Path(sys.executable).resolve(),
    reason=f"needs a second Python: {OTHER}",
)


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    yield made
    with stopped(made):
        pass


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels, which this process has installed."""
    folder = tmp_path / "wheels"
    site = tmp_path / "site-packages"
    for wheel in (
        write_wheel(folder, "deeper", "2.1"),
        write_wheel(folder, "small", "1.0", "import deeper", ["deeper>=2"]),
    ):
        zipfile.ZipFile(wheel).extractall(site)
    monkeypatch.syspath_prepend(str(site))
    return folder


def backend(lab, *hosts):
    return {"type": "ssh", "hosts": list(hosts), "config_file": str(lab.config), "python": OTHER}


def test_what_hosts_lack_is_refused_before_anything_is_sent(lab, home, wheels):
    with pytest.raises(BackendUnavailableError) as caught:
        at.submit(CODE, home=home, backend=backend(lab, "h1", "h2"))
    assert caught.value.found == "Not all that this cell needs is there: h1: missing small; h2: missing small."
    assert caught.value.action.splitlines()[:2] == [
        f"{host}: {OTHER} -m pip install small==1.0" for host in ("h1", "h2")
    ]
    assert not list(lab.hosts[0].home().glob(".autotrain/bundles/*"))
    assert at.experiments(home=home) == []


def test_a_matching_environment_is_made_on_each_host_once(lab, home, wheels):
    env = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}
    experiment = at.submit(
        CODE, home=home, backend=backend(lab, "h1"), environment="match", env=env, trials=3, concurrency=3
    )
    experiment.wait()
    assert [trial.state for trial in experiment.trials] == [TrialState.SUCCEEDED] * 3, [
        (trial.reason, experiment.logs(trial.number)) for trial in experiment.trials
    ]
    made = [path for path in (lab.hosts[0].home() / ".autotrain" / "environments").iterdir() if path.is_dir()]
    assert len(made) == 1
