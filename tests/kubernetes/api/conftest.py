"""The API server of the double without nodes, and by `make test-cluster` the same tests on any cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kubernetes import client, config

from tests.kubernetes import real_cluster
from tests.kubernetes.api.requests import Requests, core_path
from tests.labs.kubernetes.server.api_server import ApiServer
from tests.labs.kubernetes.store.object_store import ObjectStore

_NAMESPACE_GOES_WITHIN_S = 60.0


@dataclass
class Containers:
    """Containers whose logs are files and whose processes run here."""

    folder: Path
    previous: Path | None = None
    started: bool = True
    writing: bool = False
    restarts: int = 0
    seen: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.restarts}.log"

    def log_path(self, pod: dict, container: str, *, previous: bool) -> Path | None:
        if previous:
            return self.previous
        return self.log if self.started else None

    def writes_log(self, pod: dict, container: str) -> bool:
        return self.writing

    def exec(
        self, pod: dict, container: str, command: Sequence[str], *, stdin: int, stdout: int, stderr: int
    ) -> subprocess.Popen[bytes]:
        self.seen.append((container, command))
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr)


@dataclass
class Double:
    store: ObjectStore
    api: ApiServer
    containers: Containers


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Double]:
    store = ObjectStore()
    containers = Containers(tmp_path)
    api = ApiServer(store, tmp_path, containers, bookmark_interval_s=0.2)
    api.start()
    yield Double(store, api, containers)
    api.stop()


@pytest.fixture(scope="session")
def lasting_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    api = ApiServer(ObjectStore(), tmp_path_factory.mktemp("api"))
    api.start()
    yield api.kubeconfig()
    api.stop()


@pytest.fixture(params=["double", pytest.param("cluster", marks=pytest.mark.cluster)])
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Of the double, and of the cluster that KUBECONFIG names."""
    if request.param == "double":
        return request.getfixturevalue("lasting_kubeconfig")
    return real_cluster.kubeconfig_of_environment(request.config)


def client_of(kubeconfig: Path) -> client.ApiClient:
    """Return the official client; a fresh configuration, since the default one is shared."""
    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    configuration.retries = False
    return client.ApiClient(configuration)


@pytest.fixture
def api_client(kubeconfig: Path) -> Iterator[client.ApiClient]:
    with client_of(kubeconfig) as found:
        yield found


@pytest.fixture
def core(api_client: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api_client)


@pytest.fixture
def batch(api_client: client.ApiClient) -> client.BatchV1Api:
    return client.BatchV1Api(api_client)


@pytest.fixture
def requests(kubeconfig: Path) -> Requests:
    return Requests(kubeconfig)


@pytest.fixture
def namespace(core: client.CoreV1Api) -> Iterator[str]:
    with real_cluster.new_namespace(core) as name:
        yield name


def wait_until(done: Callable[[], bool], what: str) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + _NAMESPACE_GOES_WITHIN_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def make_quota(requests: Requests, namespace: str, quota: dict) -> None:
    """Make a quota, and wait until its controller has counted: before, all that it limits is refused as unknown."""
    path = core_path(namespace, "resourcequotas")
    assert requests("POST", path, quota).code == 201
    name = f"{path}/{quota['metadata']['name']}"
    wait_until(lambda: (requests("GET", name).body.get("status") or {}).get("hard"), "the quota is not counted")
