"""Tests of what a profile and a header of Kubernetes may say: faults with the nearest match, all at once."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from jupyter_autotrain import header
from jupyter_autotrain.backends.kubernetes.options.adaptdl_options import AdaptdlOptions
from jupyter_autotrain.backends.kubernetes.options.framework_options import FrameworkOptions
from jupyter_autotrain.backends.kubernetes.options.kubeflow_options import KubeflowOptions
from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import KubernetesOptions
from jupyter_autotrain.errors import HeaderError

OF_OPERATORS = {"kubeflow": KubeflowOptions, "adaptdl": AdaptdlOptions, "frameworkcontroller": FrameworkOptions}
TYPES = {"kubernetes": KubernetesOptions, **OF_OPERATORS}
SCHEMA = header.with_backend_types(tuple(TYPES.items()))
CONTEXT = header.HeaderContext(Path("/project"), {}, tuple(TYPES), SCHEMA)


def options(written: str, of: str = "kubernetes") -> dict:
    """Return the checked options of a backend that is written out in a header."""
    read = header.parse_cell("", f"backend: {{type: {of}, {written}}}\n---\nx = 1", CONTEXT)
    return dict(read.header.choices[0].profile.options)


def faults(written: str, of: str = "kubernetes") -> list[str]:
    with pytest.raises(HeaderError) as caught:
        options(written, of)
    return [fault.removeprefix("line 2: backend.") for fault in caught.value.faults]


def test_texts_stay_texts_and_the_rest_of_a_manifest_is_typed() -> None:
    found = options(
        "labels: {fast: true, run: 8}, shared_memory: 8GB, security_context: {runAsUser: 1000}, "
        "patch: {spec: {backoffLimit: 2, suspend: true}}, reuse: true"
    )
    assert found == {
        "labels": {"fast": "true", "run": "8"},
        "shared_memory": 8_000_000_000,
        "security_context": {"runAsUser": 1000},
        "patch": {"spec": {"backoffLimit": 2, "suspend": True}},
        "reuse": 1,
    }


@pytest.mark.parametrize("of", OF_OPERATORS)
def test_pods_of_operators_cannot_be_reused_and_it_is_said_why_and_what_can(of: str) -> None:
    (fault,) = faults("reuse: 4", of)
    assert fault.startswith("reuse")
    assert "an operator makes pods for one trial" in fault
    assert "type: kubernetes" in fault
    assert options("reuse: 0", of).get("reuse", 0) == 0


def test_a_file_here_is_found_from_the_folder_of_the_notebook() -> None:
    assert options("kubeconfig: ./config") == {"kubeconfig": "/project/config"}


def test_names_of_secrets_are_no_secrets() -> None:
    found = options(
        "image_pull_secrets: [registry-login], volumes: [{path: /keys, secret: licences}], "
        "storage: {s3: {bucket: team, secret: s3-team}}"
    )
    assert found["image_pull_secrets"] == ["registry-login"]
    assert found["storage"]["s3"]["secret"] == "s3-team"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("namspace: a", "did you mean 'namespace'?"),
        ("namespace: Team_A", "expected a name of Kubernetes: small letters, digits and dashes"),
        ("security_context: {runAsUsr: 1}", "did you mean 'runAsUser'?"),
        ("affinity: {podAfinity: {}}", "did you mean 'podAffinity'?"),
        ("tolerations: ['a:NoShedule']", "expected the effect NoSchedule"),
        ("pod_patch: {containers: []}", "expected metadata or spec of a pod"),
        ("patch: {status: {}}", "expected metadata or spec of the object"),
        ("labels: {jupyter-autotrain/job: x}", "expected no key that the backend sets itself"),
        ("labels: {team: 'a b'}", "expected at most 63 letters"),
        ("volumes: [{path: /a}]", "expected one of pvc, nfs, host_path, empty_dir, secret, config_map"),
        ("volumes: [{path: /a, pvc: x, nfs: 's:/e'}]", "pvc and nfs together"),
        ("volumes: [{path: a, pvc: x}]", "expected an absolute path such as /data"),
        ("volumes: [{path: /a, pvc: x, sub_path: ../b}]", "expected a path inside the volume"),
        ("volumes: [{path: /a, pvcs: x}]", "did you mean 'pvc'?"),
        ("storage: {http: team}", "expected a URL such as https://"),
        ("image_pull_policy: sometimes", "expected one of Always, IfNotPresent, Never"),
    ],
)
def test_a_fault_names_what_was_expected(written: str, says: str) -> None:
    assert any(says in fault for fault in faults(written)), faults(written)


def test_all_faults_are_told_at_once() -> None:
    assert len(faults("namspace: a, queue: B, patch: 3, volumes: [{path: a, pvc: x}]")) == 4


def test_a_section_of_a_header_sets_what_an_experiment_may_set() -> None:
    cell = "backend: kubernetes\nkubernetes: {queue: team-a, priority_class: low}\n---\nx = 1"
    (choice,) = header.parse_cell("", cell, CONTEXT).header.choices
    assert choice.options == {"queue": "team-a", "priority_class": "low"}
    with pytest.raises(HeaderError, match="unknown key 'namespace' in kubernetes"):
        header.parse_cell("", "backend: kubernetes\nkubernetes: {namespace: x}\n---\nx = 1", CONTEXT)


def completed(before: str) -> tuple[str, ...]:
    """Return what TAB offers at the end of a header."""
    text = f"%%autotrain\n{before}"
    return header.completions(text, len(text), ("kubernetes",), SCHEMA).matches


def test_tab_knows_options_and_their_values() -> None:
    assert completed("backend: {type: kubernetes, name") == ("namespace: ", "name: ")
    assert completed("kubernetes:\n  qu") == ("queue: ",)
    assert completed("backend:\n  type: kubernetes\n  storage:\n    az") == ("azure_file: ",)
    assert "pvc: " in completed("backend: {type: kubernetes, storage: {")


def test_the_json_schema_of_the_options_takes_their_examples() -> None:
    validator = jsonschema.Draft202012Validator(KubernetesOptions.model_json_schema())
    for name, field in KubernetesOptions.model_fields.items():
        for example in field.examples or ():
            value = yaml.safe_load(f"{name}: {example}")
            assert not list(validator.iter_errors(value)), name
            assert KubernetesOptions.model_validate(value)


def test_help_names_every_option() -> None:
    text = header.help_text("backend", SCHEMA)
    assert all(f"    {name}: " in text for name in KubernetesOptions.model_fields)
    assert "Merged into the object last of all" in header.help_text("kubernetes.patch", SCHEMA)
