"""A cluster whose login node is reached by SSH: Slurm runs on a host of the SSH lab."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS, BackendHarness
from tests.labs import slurm_lab, ssh_lab


class LastingLink(HostLink):
    def close(self) -> None:
        """Leave it open: the next backend goes on with it."""


class Login:
    """A host with Slurm on it, and one link to it that all tests share."""

    def __init__(self, lab: ssh_lab.SshLab, cluster: slurm_lab.SlurmLab) -> None:
        self.lab = lab
        self.cluster = cluster
        self.made: dict[HostConfig, HostLink] = {}

    def link(self, config: HostConfig) -> HostLink:
        if config not in self.made:
            self.made[config] = LastingLink(config)
        return self.made[config]

    def backend(self, context: BackendContext) -> SlurmBackend:
        options = {"via": "h1", "config_file": str(self.lab.config), "python": sys.executable}
        return SlurmBackend(Profile("cluster", "slurm", options), context, self.link)


@pytest.fixture(scope="module")
def the_login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    reason = ssh_lab.missing() or slurm_lab.missing()
    if reason:
        pytest.skip(reason)
    pytest.importorskip("paramiko", reason="paramiko is not installed: pip install 'jupyter-autotrain[ssh]'")
    lab = ssh_lab.SshLab(tmp_path_factory.mktemp("lab"), 1, shares_files=True)
    folder = Path(tempfile.mkdtemp(prefix="at-slurm-"))
    try:
        host = lab.hosts[0]
        cluster = slurm_lab.SlurmLab(folder, hosts=[host])
        (host.home() / ".bashrc").write_text(f"export SLURM_CONF={cluster.config}\n")
        login = Login(lab, cluster)
        yield login
        for link in login.made.values():
            HostLink.close(link)
        cluster.close()
    finally:
        lab.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def login(the_login: Login) -> Iterator[Login]:
    with the_login.lab.inside():
        yield the_login
    the_login.cluster.clear()


def test_a_trial_on_a_cluster_behind_a_login_node(login: Login, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    backend = login.backend(BackendContext(home))
    assert "on h1" in backend.probe().reason
    assert [node.name for node in backend.discover().nodes] == ["n1", "n2"]
    contract = Harness()
    code = "report(loss=1)\nprint(len(__import__('os').environ['API_KEY']))"
    trial = trial_of(home, code, secrets=("API_KEY",), resources=Resources(cpus=1))
    ref = backend.submit(trial, Placement(), {"API_KEY": "s3cr3t-t0ken-0123456789"})
    assert contract.finish(backend, ref).state is TrialState.SUCCEEDED
    assert contract.read(backend, ref, wire.STDOUT) == b"23\n"
    assert contract.points(backend, ref) == [(0, {"loss": 1.0})]
    root = login.lab.hosts[0].home() / ".autotrain"
    found = subprocess.run(["grep", "-rslF", "s3cr3t-t0ken", root], capture_output=True, check=False)
    assert found.stdout == b""
    wait_until(lambda: list(backend.experiments_there()) == ["e1"], "the supervisor's end")
    backend.remove_experiments(["e1"])
    assert backend.experiments_there() == {}


def test_checkpoints_of_another_backend_are_sent_and_go_with_the_experiment(login: Login, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    saved = home.trial("e1", 1, 1) / wire.CHECKPOINTS / "step-000000000010.pkl"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(pickle.dumps(10))
    backend = login.backend(BackendContext(home))
    contract = Harness()
    ref = contract.start(backend, home, "print('from', checkpoint.load(0))", attempt=2, resume_attempt=1)
    assert contract.finish(backend, ref).state is TrialState.SUCCEEDED
    assert contract.read(backend, ref, wire.STDOUT) == b"from 10\n"
    root = login.lab.hosts[0].home() / ".autotrain"
    assert list(root.glob("jobs/*/e1-1-1/moved/*/*.pkl"))
    wait_until(lambda: list(backend.experiments_there()) == ["e1"], "the supervisor's end")
    backend.remove_experiments(["e1"])
    digest = hashlib.sha256(saved.read_bytes()).hexdigest()
    assert not [path for path in root.rglob("*") if path.name in {saved.name, digest}]


def test_code_goes_with_the_last_experiment_of_any_home_that_needs_it_and_comes_again(
    login: Login, tmp_path: Path
) -> None:
    root = login.lab.hosts[0].home() / ".autotrain"
    contract = Harness()
    code = f"print({str(tmp_path)!r})"
    backends = []
    for name in ("one", "two"):
        home = Home(tmp_path / name)
        backends.append(login.backend(BackendContext(home)))
        assert contract.finish(backends[-1], contract.start(backends[-1], home, code)).state is TrialState.SUCCEEDED

    def is_there() -> bool:
        return any(str(tmp_path) in path.read_text() for path in root.glob("kept_bundles/*/main.py"))

    for backend, is_kept in zip(backends, (True, False), strict=True):
        wait_until(lambda backend=backend: list(backend.experiments_there()) == ["e1"], "the supervisor's end")
        backend.remove_experiments(["e1"])
        assert is_there() is is_kept
    again = contract.start(backends[0], Home(tmp_path / "one"), code, experiment_id="e2")  # its link knows it as sent
    assert contract.finish(backends[0], again).state is TrialState.SUCCEEDED
    assert is_there()


@pytest.mark.long
def test_a_cut_link_leaves_the_trial_alone_and_it_is_read_on(login: Login, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    backend = login.backend(BackendContext(home))
    contract = Harness()
    ref = contract.start(backend, home, WAITS)
    contract.begun(backend, ref)
    host = login.lab.hosts[0]
    host.cut()
    wait_until(lambda: contract.status(backend, ref).unreachable, "a doubt")
    host.heal()
    wait_until(lambda: not contract.status(backend, ref).doubt, "an answer")
    receipt = backend.cancel(ref, 1.0)
    assert receipt.pids_left == ()
    assert contract.status(backend, ref).state is TrialState.CANCELLED


class Harness(BackendHarness):
    def make(self, context: BackendContext) -> Backend:
        raise NotImplementedError


@pytest.mark.long
class TestSlurmViaSsh(BackendContract):
    @pytest.fixture(autouse=True)
    def _login(self, login: Login) -> None:
        self.login = login

    def make(self, context: BackendContext) -> Backend:
        return self.login.backend(context)

    def is_gone(self, pid: int) -> bool:
        return self.login.cluster.is_gone(pid)

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])"
        ref = backend.submit(trial_of(home, code, resources=Resources(gpus=2)), Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"0,1\n"
