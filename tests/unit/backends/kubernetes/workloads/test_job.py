"""A plain Job, whole, and what kubectl gets of it."""

from __future__ import annotations

import base64
import hashlib
import time
from pathlib import Path

import pytest
import yaml

from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.previewing import to_yaml
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home, home_identity
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Resources, TrialSpec

GOLDEN = Path(__file__).parents[4] / "golden" / "kubernetes" / "job.yaml"
OPTIONS = {
    "queue": "team-a", "labels": {"team": "vision"}, "gpu_product": "NVIDIA-A100", "shared_memory": 8_000_000_000,
    "service_account": "trainer", "volumes": [{"path": "/data", "pvc": "datasets", "read_only": True}],
    "tolerations": [{"key": "spot", "operator": "Exists"}], "priority_class": "low", "ttl": 3600.0,
    "pod_patch": {"spec": {"hostNetwork": True}}, "patch": {"spec": {"backoffLimit": 2}},
}  # fmt: skip


def program(number: int = 3, options: dict | None = None, **spec: object) -> TrialProgram:
    trial = TrialSpec("20261122-digits", number, 1, params={"lr": 0.1}, **spec)
    maps = {"agent.zip": "autotrain-code", "bundle.tar.gz": "autotrain-bundle"}
    return TrialProgram(trial, options or {}, JobWorkload(), "0123456789abcdef", "team", maps)


def test_the_golden_manifests_of_jobs_are_as_they_were(request: pytest.FixtureRequest) -> None:
    whole = Resources(cpus=3.5, memory_bytes=2_000_000_000, gpus=2, nodes=2, workers_per_node=2)
    both = [program(), program(options=OPTIONS, resources=whole, timeout_s=90.0, secrets=("TOKEN",))]
    text = to_yaml([found for one in both for found in one.manifests().objects])
    if request.config.getoption("--golden-update"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def seconds_of_a_thousand() -> float:
    begun_s = time.process_time()
    names = {program(number, OPTIONS).manifests().objects[0]["metadata"]["name"] for number in range(1000)}
    assert len(names) == 1000
    return time.process_time() - begun_s


def test_a_thousand_manifests_are_rendered_in_seconds() -> None:
    assert seconds_of_a_thousand() < 10.0  # 0.5 s on a machine that is not busy


def test_what_is_exported_has_the_code_and_of_secrets_the_names_only(tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path / "home"))
    trial = TrialSpec("20261122-digits", 3, 1, resources=Resources(nodes=2), secrets=("HF_TOKEN",))
    bundle = context.bundle(trial)
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text("report(x=1)")
    backend = KubernetesBackend(Profile("lab", "kubernetes", {"namespace": "team"}), context)
    text = backend.manifest_text(trial)
    backend.close()
    *maps, secret, service, job = yaml.safe_load_all(text)
    assert [one["kind"] for one in (*maps, secret, service, job)] == [
        "ConfigMap", "ConfigMap", "Secret", "Service", "Job",
    ]  # fmt: skip
    ((name, content),) = maps[1]["binaryData"].items()
    code = base64.b64decode(content)
    assert (name, code[:2]) == (f"{hashlib.sha256(code).hexdigest()}.tar.gz", b"\x1f\x8b")
    assert secret["stringData"]["HF_TOKEN"] == "(to be filled in)"
    assert f"# Fill in the values of HF_TOKEN in the Secret {secret['metadata']['name']} first." in text
    assert {one["metadata"]["labels"]["jupyter-autotrain/home"] for one in (*maps, secret, service, job)} == {
        "exported"
    }
    assert home_identity(context.home) not in text
