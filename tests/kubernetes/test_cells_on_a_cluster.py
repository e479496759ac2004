"""From a cell to a cluster: what is shown, what is refused before anything is sent, and what kubectl gets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output
from traitlets.config import Config

from jupyter_autotrain import backends, manager
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.home import Home
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import JOBS, NAMESPACES, PODS, RESOURCE_QUOTAS
from tests.labs.kubernetes.server.access import Rule, User
from tests.matrices import long_besides
from tests.projects import trust_project

pytestmark = pytest.mark.usefixtures("patient_cells")
TYPES = {"kubernetes", "kubeflow", "adaptdl", "frameworkcontroller"}
CODE = "---\nreport(step=1, answer=42)"


class Notebook:
    """Runs cells, with a profile `lab` that is the cluster."""

    def __init__(self, cluster: KubernetesLab, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
        self.run("%load_ext jupyter_autotrain")
        self.use(cluster.kubeconfig)

    def use(self, kubeconfig: Path, **options: object) -> None:
        """Have the profile `lab` use a kubeconfig."""
        profile = {"type": "kubernetes", "kubeconfig": str(kubeconfig), **options}
        (self.folder / "autotrain.yaml").write_text(json.dumps({"backends": {"lab": profile}}))
        trust_project(self.folder, os.environ)

    def run(self, source: str) -> str:
        shown: CapturedIO
        with capture_output() as shown:
            result = self.shell.run_cell(source)
        assert result.success, (result.error_in_exec, result.error_before_exec)
        return shown.stdout + "".join(str(output.data.get("text/plain", "")) for output in shown.outputs)

    def fails(self, source: str) -> list[str]:
        with capture_output():
            result = self.shell.run_cell(source)
        error = result.error_in_exec or result.error_before_exec
        assert error is not None, "the cell was expected to fail"
        return error._render_traceback_()  # type: ignore[attr-defined]  # of every error of ours

    def cell(self, header: str, line: str = "") -> str:
        return f"%%autotrain {line}\nbackend: lab\n{header}\n{CODE}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    status = manager.status(home)
    if status.alive:
        process = psutil.Process(status.pid)
        process.kill()
        psutil.wait_procs([process], timeout=240)


@pytest.fixture
def notebook(home: Home, cluster: KubernetesLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(folder)
    made = Notebook(cluster, folder)
    yield made
    made.shell.run_line_magic("unload_ext", "jupyter_autotrain")
    made.shell.reset(new_session=True)


def asked(cluster: KubernetesLab) -> int:
    return sum(cluster.api.requests.values())


def test_a_dry_run_shows_the_whole_object_without_any_cluster(notebook: Notebook) -> None:
    notebook.use(Path("/nowhere"), namespace="team", queue="team-a", pod_patch={"spec": {"restartPolicy": "OnFailure"}})
    before = asked(notebook.cluster)
    shown = notebook.run(notebook.cell("resources: {gpus: 1, nodes: 2}\nsecrets: []", "--dry-run"))
    text = shown.partition("--- trial.yaml\n")[2].partition("note: ")[0]
    job, service, secret = yaml.safe_load_all(text)
    assert (job["kind"], service["kind"], secret["kind"]) == ("Job", "Service", "Secret")
    assert job["metadata"]["namespace"] == "team"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "note: `pod_patch` replaces spec.restartPolicy." in shown
    assert "note: The cluster was not asked: that it takes Job (batch/v1)" in shown
    assert asked(notebook.cluster) == before


def test_unknown_fields_are_refused_by_name_before_anything_is_sent(notebook: Notebook, home: Home) -> None:
    patch = "{spec: {paralelism: 2, template: {spec: {hostNetwrk: true}}}}"
    lines = notebook.fails(notebook.cell(f"kubernetes: {{patch: {patch}}}"))
    assert sorted(line.removeprefix("BackendUnavailableError: ") for line in lines[:2]) == [
        'Job: unknown field "spec.paralelism"',
        'Job: unknown field "spec.template.spec.hostNetwrk"',
    ]
    assert len(lines) <= 6
    assert notebook.cluster.store.list(JOBS, None)[0] == []
    assert not list(home.root.glob("experiments/*"))


@pytest.fixture
def team(notebook: Notebook, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a namespace with the labels that a test asks for."""
    store = notebook.cluster.store
    store.create(NAMESPACES, "", {"metadata": {"name": "team", "labels": getattr(request, "param", {})}})
    yield "team"
    store.delete(NAMESPACES, "", "team")


def refusal_of_pod(notebook: Notebook, **options: str) -> str:
    """Return what a cell says whose pods a namespace would refuse; nothing is made."""
    notebook.use(notebook.cluster.kubeconfig, namespace="team", **options)
    lines = notebook.fails(notebook.cell("trials: 1"))
    assert len(lines) <= 6
    assert notebook.cluster.store.list(JOBS, "team")[0] == []
    assert notebook.cluster.store.list(PODS, "team")[0] == []
    return lines[0]


@pytest.mark.parametrize(
    ("option", "thing"),
    [("priority_class", "priority class"), pytest.param("service_account", "service account", marks=pytest.mark.long)],
)
@pytest.mark.usefixtures("team")
def test_what_its_pods_name_and_is_not_there_is_told_before_anything_is_sent(
    notebook: Notebook, option: str, thing: str
) -> None:
    assert f"Pod: there is no {thing} absent: correct `{option}`" in refusal_of_pod(notebook, **{option: "absent"})


@pytest.mark.parametrize("team", [{"pod-security.kubernetes.io/enforce": "restricted"}], indirect=True)
@pytest.mark.usefixtures("team")
def test_pods_that_the_security_of_a_namespace_forbids_are_told_before_anything_is_sent(notebook: Notebook) -> None:
    assert "Pod: the namespace allows only pods of the security standard restricted" in refusal_of_pod(notebook)


def test_a_quota_that_no_pod_fits_into_is_told_before_anything_is_sent(notebook: Notebook, team: str) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    notebook.cluster.store.create(RESOURCE_QUOTAS, team, quota)
    told = refusal_of_pod(notebook)
    assert "Pod: the quota small of its namespace is too small: it asks for pods=1, and pods=0 is allowed" in told


def test_a_queue_that_is_not_there_is_refused_before_anything_is_sent(notebook: Notebook) -> None:
    lines = notebook.fails(notebook.cell("kubernetes: {queue: nowhere}"))
    assert "No queue 'nowhere' among the localqueues.kueue.x-k8s.io in the namespace 'default'." in lines[0]
    assert notebook.cluster.store.list(JOBS, None)[0] == []


@pytest.mark.parametrize("type_name", sorted(TYPES & set(backends.type_names())))
def test_each_type_shows_its_object_without_any_cluster(notebook: Notebook, type_name: str) -> None:
    profile = f"{{type: {type_name}, kubeconfig: /nowhere, namespace: team}}"
    shown = notebook.run(f"%%autotrain --dry-run\nbackend: {profile}\n{CODE}")
    text = shown.partition("--- trial.yaml\n")[2].partition("note: ")[0]
    first, *_ = yaml.safe_load_all(text)
    assert first["metadata"]["namespace"] == "team"
    assert f"that it takes {first['kind']} ({first['apiVersion']})" in shown
    assert "/autotrain/code/agent.zip" in text


@pytest.mark.parametrize("type_name", long_besides(["adaptdl", "kubeflow"], sorted(TYPES & set(backends.type_names()))))
def test_each_type_refuses_unknown_fields_of_its_object_by_name(notebook: Notebook, type_name: str) -> None:
    kubeflow.install(notebook.cluster.store)
    config = notebook.cluster.kubeconfig
    profile = f"{{type: {type_name}, kubeconfig: {config}, storage: {{pvc: x}}, patch: {{spec: {{paralelism: 2}}}}}}"
    lines = notebook.fails(f"%%autotrain\nbackend: {profile}\n{CODE}")
    kubeflow.remove(notebook.cluster.store)
    assert 'unknown field "spec.paralelism"' in lines[0]


def test_missing_permissions_are_refused_with_a_role_that_helps(notebook: Notebook) -> None:
    cluster = notebook.cluster
    rules = (
        Rule(("create", "get", "list", "watch"), ("batch", ""), ("jobs", "pods", "pods/log", "configmaps")),
        Rule(("create",), ("authorization.k8s.io",)),
    )
    notebook.use(cluster.api.kubeconfig(User("ada", rules)))
    lines = notebook.fails(notebook.cell("trials: 1"))
    assert "ada may not" in lines[0]
    assert "deletecollection jobs.batch, create pods/exec, get pods/exec, patch configmaps" in lines[0]
    role = json.loads(lines[2])["items"][0]
    given = [Rule(tuple(one["verbs"]), tuple(one["apiGroups"]), tuple(one["resources"])) for one in role["rules"]]
    notebook.use(cluster.api.kubeconfig(User("ada", (*rules, *given))))
    assert "Valid for backend 'lab'" in notebook.run(notebook.cell("trials: 1", "--check"))


def test_the_check_of_a_profile_goes_from_the_kubeconfig_to_a_metric(notebook: Notebook) -> None:
    shown = notebook.run("%autotrain backends check lab")
    names = [line.split()[1] for line in shown.splitlines() if line.startswith("ok")]
    assert names == [
        "access", "reach", "log", "kinds", "permissions", "fields", "storage", "image", "tiny", "metric", "clean",
    ]  # fmt: skip
    assert "lab works" in shown


def test_what_is_exported_runs_without_this_package(notebook: Notebook) -> None:
    notebook.run(notebook.cell("search: {x: 'choice(7)'}", "exported --wait").replace("answer=42", "answer=x"))
    notebook.run("%autotrain export exported --yaml")
    found = list(yaml.safe_load_all((notebook.folder / "exported.yaml").read_text()))
    assert [one["kind"] for one in found] == ["ConfigMap", "ConfigMap", "Job"]
    for manifest in found:
        kind = ObjectType.of(manifest)
        notebook.cluster.store.create(resource_of(notebook.cluster, kind.plural), "default", manifest)
    name = found[-1]["metadata"]["name"]
    objects.wait_for_condition(notebook.cluster, name, "Complete")
    (pod,) = notebook.cluster.store.list(PODS, "default", f"job-name={name}")[0]
    assert '\\"answer\\":7' in objects.log(notebook.cluster, pod, "trial")


def resource_of(cluster: KubernetesLab, plural: str) -> object:
    return next(one for one in cluster.store.resources if one.plural == plural)
