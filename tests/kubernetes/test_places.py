"""Data, checkpoints, code and environments on their way to pods of a cluster whose pods are processes."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment, PythonPackage
from jupyter_autotrain.agent.objects.remote_files import Credentials
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.exec_command import ExecChannel
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.client.clusters import cluster_of
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources, TrialSpec
from jupyter_autotrain.errors import BackendError, PlanError
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from jupyter_autotrain.testing.files import data_of
from tests.example_graphs import random_graph
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.file_server import FileServer, serving
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, NODES, PODS, SECRETS
from tests.labs.wheels import write_wheel
from tests.projects import trust_project

KEYS = {"AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": "quiet"}
BIG_BYTES = 1_500_000  # of random bytes: no ConfigMap holds them
SAVES = """
kept = checkpoint.load()
print("from", kept)
checkpoint.save({"step": 1 if kept is None else kept["step"] + 1})
"""


@contextlib.contextmanager
def backend_on(cluster: KubernetesLab, home: Home, **options: object) -> Iterator[KubernetesBackend]:
    given = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", **options}
    backend = KubernetesBackend(Profile("lab", "kubernetes", given), BackendContext(home), load_once)
    try:
        yield backend
    finally:
        backend.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a folder that all nodes have."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def run(backend: KubernetesBackend, trial: TrialSpec) -> tuple[JobStatus, str]:
    """Return how a trial ends, and what it prints."""
    return ended(backend, backend.submit(trial, Placement(), {}))


def ended(backend: KubernetesBackend, ref: JobRef) -> tuple[JobStatus, str]:
    wait_until(lambda: backend.poll([ref])[0].state.is_final, f"the end of {ref.job_id}")
    texts = [backend.read([Cursor(ref, stream, 0)])[0].data.decode() for stream in (wire.STDOUT, wire.STDERR)]
    return backend.poll([ref])[0], "".join(texts)


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o777), (1000, 0o755)])
def test_a_user_other_than_root_keeps_checkpoints_on_the_volume(
    cluster: KubernetesLab, home: Home, shared: Path, owner: int, mode: int
) -> None:
    shared.chmod(mode)
    os.chown(shared, owner, owner)
    shared.parent.chmod(0o755)
    options = {"storage": {"host_path": str(shared)}, "security_context": {"runAsUser": 1000, "runAsGroup": 1000}}
    with backend_on(cluster, home, **options) as backend:
        status, text = run(backend, trial_of(home, f"import os\nprint(os.getuid())\n{SAVES}"))
        assert (status.state, text) == (TrialState.SUCCEEDED, "1000\nfrom None\n"), status.reason
        status, text = run(backend, trial_of(home, SAVES, attempt=2, resume_attempt=1))
        assert text == "1000\nfrom {'step': 1}\n", status


def big_file(tmp_path: Path) -> Path:
    path = tmp_path / "big.bin"
    path.write_bytes(os.urandom(BIG_BYTES))
    return path


def trial_with_big_data(home: Home, tmp_path: Path) -> TrialSpec:
    code = "print(len(data.big.read_bytes()), data.big.parts[:3])"
    return trial_of(home, code, data=data_of(home, tmp_path, big=big_file(tmp_path).name))


def test_small_data_and_code_go_by_config_maps_that_end_with_the_last_job_that_uses_them(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("1,2\n" * 50_000)
    data = data_of(home, tmp_path, train="train.csv")
    code = "print(len(data.train.read_text()))"
    with backend_on(cluster, home) as backend:
        first, second = (trial_of(home, code, number=number, data=data) for number in (1, 2))
        refs = [backend.submit(trial, Placement(), {}) for trial in (first, second)]
        assert {ended(backend, ref)[1] for ref in refs} == {"200000\n"}
        wait_until(lambda: not cluster.store.list(JOBS, "default")[0], "jobs that are deleted")
        wait_until(lambda: not cluster.store.list(CONFIG_MAPS, "default")[0], "config maps that are collected")
        assert run(backend, trial_of(home, code, number=3, data=data))[1] == "200000\n"  # made again


def loaders(cluster: KubernetesLab) -> list[str]:
    names = [pod["metadata"]["name"] for pod in cluster.store.list(PODS, "default")[0]]
    return [name for name in names if name.startswith("autotrain-loader")]


def test_big_data_is_refused_where_the_profile_names_no_storage(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    with backend_on(cluster, home) as backend, pytest.raises(BackendError, match=r"data\.big has 1\.5 MB"):
        backend.submit(trial_with_big_data(home, tmp_path), Placement(), {})
    assert cluster.store.list(JOBS, "default")[0] == []


def test_big_data_is_written_to_the_volume_by_a_pod_and_read_there(
    cluster: KubernetesLab, home: Home, tmp_path: Path, shared: Path
) -> None:
    with backend_on(cluster, home, storage={"host_path": str(shared)}) as backend:
        trial = trial_with_big_data(home, tmp_path)
        status, text = run(backend, trial)
        assert text == f"{BIG_BYTES} ('/', 'autotrain', 'storage')\n", status
        wait_until(lambda: not loaders(cluster), "the end of the pod that wrote")
    assert len(list(shared.glob("data/archives/*/*/big.bin"))) == 1


def held_bytes(shared: Path) -> int:
    return sum(path.stat().st_size for path in shared.glob("data/**/*") if path.is_file())


def test_an_upload_to_the_volume_goes_on_where_the_end_of_its_pod_cut_it(
    cluster: KubernetesLab, home: Home, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    send = ExecChannel.send

    def cut_half_way(channel: ExecChannel, data: bytes, within_s: float = 60.0) -> None:
        sent.append(len(data))
        send(channel, data, within_s)
        if sum(sent) > BIG_BYTES // 2:
            wait_until(lambda: held_bytes(shared) > BIG_BYTES // 4, "part of it in the volume")
            for name in loaders(cluster):
                cluster.store.delete(PODS, "default", name)
            wait_until(lambda: not loaders(cluster), "the end of the pod that writes")

    with backend_on(cluster, home, storage={"host_path": str(shared)}) as backend:
        trial = trial_with_big_data(home, tmp_path)
        monkeypatch.setattr(ExecChannel, "send", cut_half_way)
        with pytest.raises(BackendError):
            backend.submit(trial, Placement(), {})
        assert list(shared.glob("data/archives/*/*/big.bin")) == []
        sent.clear()
        monkeypatch.setattr(ExecChannel, "send", lambda *given: sent.append(len(given[1])) or send(*given))
        assert run(backend, trial)[1].startswith(f"{BIG_BYTES} ")
    assert sum(sent) < 0.8 * BIG_BYTES
    assert len(list(shared.glob("data/archives/*/*/big.bin"))) == 1
    assert list(shared.glob("data/archives/*/blobs")) == []


def test_big_data_goes_to_s3_signed_with_the_keys_of_a_secret_that_no_trial_sees(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    data = {name: base64.b64encode(value.encode()).decode() for name, value in KEYS.items()}
    secret = {"metadata": {"name": "keys"}, "type": "Opaque", "data": data}
    cluster.store.create(SECRETS, "default", secret)
    with cluster.inside():
        server = FileServer(Credentials.from_variables(KEYS), host="10.80.0.1")
    storage = {"s3": {"bucket": "team", "endpoint": server.url, "secret": "keys"}}
    with serving(server), backend_on(cluster, home, storage=storage) as backend:
        trial = trial_with_big_data(home, tmp_path)
        assert backend.probe().usable  # its connections are made outside
        with cluster.inside():
            ref = backend.submit(trial, Placement(), {})
        status, text = ended(backend, ref)
        assert text == f"{BIG_BYTES} ('/', 'autotrain', 'run')\n", status
        environ = trial_of(home, "import os; print('quiet' in str(os.environ))", experiment_id="e2")
        with cluster.inside():
            assert ended(backend, backend.submit(environ, Placement(), {}))[1] == "False\n"
    assert [method for method, _ in server.requests] == ["PUT", "HEAD", "PUT", "GET"]


@pytest.mark.long
def test_data_that_was_changed_on_the_server_fails_the_trial_with_the_reason(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    with cluster.inside():
        server = FileServer(host="10.80.0.1")
    with serving(server), backend_on(cluster, home, storage={"http": {"url": server.url}}) as backend:
        trial = trial_with_big_data(home, tmp_path)
        assert backend.probe().usable
        with cluster.inside():
            ref = backend.submit(trial, Placement(), {})
            server.files = {path: bytes(len(content)) for path, content in server.files.items()}
        status, _ = ended(backend, ref)
    assert status.state is TrialState.FAILED
    assert "has the SHA-256" in status.reason


@pytest.mark.long
def test_an_image_that_lacks_what_the_cell_imports_is_told_before_the_trial_begins(
    cluster: KubernetesLab, home: Home
) -> None:
    packages = (PythonPackage("no-such-package", "1.2.3"),)
    with backend_on(cluster, home) as backend:
        status, text = run(backend, trial_of(home, "print('begun')", python_packages=packages))
    assert status.state is TrialState.FAILED
    assert "missing no-such-package" in status.reason
    assert "pip install no-such-package==1.2.3" in status.reason
    assert text == ""


@pytest.mark.parametrize("has_volume", [True, pytest.param(False, marks=pytest.mark.long)])
def test_an_attempt_goes_on_from_the_checkpoints_of_the_last_one(
    cluster: KubernetesLab, home: Home, shared: Path, has_volume: bool
) -> None:
    options = {"storage": {"host_path": str(shared)}} if has_volume else {}
    with backend_on(cluster, home, **options) as backend:
        trial = trial_of(home, SAVES)
        assert run(backend, trial)[1] == "from None\n"
        again = replace(trial, attempt=2, resume_attempt=1)
        assert run(backend, again)[1] == "from {'step': 1}\n"
        third = replace(trial, attempt=3, resume_attempt=2)
        assert run(backend, third)[1] == "from {'step': 2}\n"
        fifth = replace(trial, attempt=5, resume_attempt=4)  # the fourth was stopped before it ran
        assert run(backend, fifth)[1] == "from {'step': 3}\n"
    kept = shared / "experiments" / home_identity(home) / "e1" / "1-3" / "checkpoints"
    assert kept.is_dir() is has_volume


@pytest.mark.parametrize("kind", ["volume", pytest.param("mounted", marks=pytest.mark.long)])
def test_a_volume_loses_what_experiments_have_there_and_no_other_uses(
    cluster: KubernetesLab, home: Home, tmp_path: Path, shared: Path, kind: str
) -> None:
    other = Home(tmp_path / "other")
    storage = {"host_path": str(shared), **({"local_path": str(shared)} if kind == "mounted" else {})}
    with backend_on(cluster, home, storage=storage) as backend, backend_on(cluster, other, storage=storage) as others:
        both = trial_with_big_data(home, tmp_path)
        alone = big_trial(home, tmp_path, "alone")
        assert run(backend, both)[0].state is run(backend, alone)[0].state is TrialState.SUCCEEDED
        assert run(others, big_trial(other, tmp_path, "theirs", "big.bin"))[0].state is TrialState.SUCCEEDED
        wait_until(lambda: not cluster.store.list(JOBS, "default")[0], "the end of all Jobs")
        wait_until(lambda: not cluster.store.list(PODS, "default")[0], "the end of all pods")
        assert set(backend.experiments_there()) == {"e1", "alone"}
        backend.remove_experiments(["e1", "alone"])
        assert backend.experiments_there() == {}
        assert set(others.experiments_there()) == {"theirs"}
        wait_until(lambda: not loaders(cluster), "the end of the pods that looked")
    assert [path.name for path in shared.glob("data/archives/*/*/*")] == ["big.bin"]
    assert [path.name for path in shared.glob("experiments/*/*")] == ["theirs"]


def big_trial(home: Home, tmp_path: Path, name: str, file_name: str = "") -> TrialSpec:
    """Return a trial with data that no ConfigMap holds: a file that is there, or one of its own."""
    path = tmp_path / (file_name or f"{name}.bin")
    if not path.exists():
        path.write_bytes(os.urandom(BIG_BYTES))
    data = data_of(home, tmp_path, experiment_id=name, big=path.name)
    return trial_of(home, "print(len(data.big.read_bytes()))", experiment_id=name, data=data)


def is_all_code_owned(cluster: KubernetesLab) -> bool:
    return all(one["metadata"].get("ownerReferences") for one in cluster.store.list(CONFIG_MAPS, "default")[0])


def test_clean_finds_what_is_left_of_a_home_and_removes_only_that(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    other = Home(tmp_path / "other")
    waits = "import time\nwhile not should_stop(): time.sleep(0.05)"
    with backend_on(cluster, home) as backend, backend_on(cluster, other) as others:
        backend.submit(trial_of(home, waits, experiment_id="kept"), Placement(), {})
        backend.submit(trial_of(home, waits, experiment_id="lost"), Placement(), {})
        others.submit(trial_of(other, waits, experiment_id="lost"), Placement(), {})
        wait_until(lambda: len(cluster.store.list(PODS, "default")[0]) == 3, "three pods")
        wait_until(lambda: is_all_code_owned(cluster), "owners of all code")
        found = list(backend.leftovers(["kept"]))
        assert any(name.startswith("Job ") for name in found)
        assert backend.remove_leftovers(["kept"]) == found
        wait_until(lambda: len(cluster.store.list(JOBS, "default")[0]) == 2, "the job that is deleted")
        wait_until(lambda: backend.leftovers(["kept"]) == [], "nothing else that is left")
        left = backend.remove_leftovers([])
        assert any("ConfigMap" in name for name in left)
        wait_until(lambda: len(cluster.store.list(JOBS, "default")[0]) == 1, "the job of the other home alone")
        assert [name for name in others.leftovers([]) if name.startswith("Job ")] != []


def test_the_gpus_of_the_cluster_are_what_pods_leave_and_a_cluster_to_plan_for(
    cluster: KubernetesLab, home: Home
) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
    for node in cluster.nodes:
        cluster.store.patch(NODES, "", node, {"metadata": {"labels": labels}})
    waits = trial_of(home, "import time\nwhile not should_stop(): time.sleep(0.05)", resources=Resources(gpus=3))
    with backend_on(cluster, home) as backend:
        assert cluster_of(backend.discover(), "lab").devices == 8
        backend.submit(waits, Placement(), {})
        wait_until(lambda: busy(backend) == 3, "the GPUs that the trial takes")


def busy(backend: KubernetesBackend) -> int:
    return sum(gpu.busy for node in backend.discover().nodes for gpu in node.accelerators)


def test_the_name_of_a_profile_is_a_cluster_that_plan_splits_a_model_over(
    cluster: KubernetesLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in cluster.nodes:
        cluster.store.patch(NODES, "", node, {"metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB"}}})
    profile = f"backends:\n  lab: {{type: kubernetes, kubeconfig: {cluster.kubeconfig}, namespace: default}}\n"
    (tmp_path / "autotrain.yaml").write_text(profile)
    monkeypatch.setenv("HOME", str(tmp_path))
    trust_project(tmp_path, os.environ)
    monkeypatch.chdir(tmp_path)
    plan = at.plan(random_graph(1, ops=8), None, "lab", search="recursive_programming")
    assert plan.full_cluster.devices == 8
    cluster.api.forbid("list", "nodes")
    with pytest.raises(PlanError, match="may not be listed"):
        at.plan(random_graph(1, ops=8), None, "lab", search="recursive_programming")
    cluster.api.access.allow_again()


def test_nodes_that_may_not_be_listed_are_unknown(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        cluster.api.forbid("list", "pods")
        assert all("cpus_free" not in node.labels and node.cpus for node in backend.discover().nodes)
        cluster.api.forbid("list", "nodes")
        (node,) = backend.discover().nodes
        cluster.api.access.allow_again()
        assert "may not be listed" in node.unavailable


@pytest.mark.long
def test_a_virtual_environment_is_made_once_on_the_storage(cluster: KubernetesLab, home: Home, shared: Path) -> None:
    wheel = write_wheel(shared / "wheels", "tinyhelper", "1.2")
    line = f"tinyhelper @ file:///autotrain/storage/wheels/{wheel.name}"
    environment = PythonEnvironment(EnvironmentKind.REQUIREMENTS, "requirements.txt", (line,))
    code = "import sys, tinyhelper\nprint(tinyhelper.__version__, sys.prefix)"
    with backend_on(cluster, home, storage={"host_path": str(shared)}) as backend:
        texts = []
        for number in (1, 2):
            status, text = run(backend, trial_of(home, code, number=number, python_environment=environment))
            assert status.state is TrialState.SUCCEEDED, status
            texts.append(text)
    assert texts[0].startswith("1.2 /autotrain/storage/environments/")
    assert "Making the Python environment" in texts[0]
    assert "Making the Python environment" not in texts[1]
