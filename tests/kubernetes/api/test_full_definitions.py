"""The golden manifests against the operators' own definitions, where those are at hand (AUTOTRAIN_CRDS)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.api.conftest import Double
from tests.kubernetes.api.requests import Requests
from tests.labs.kubernetes.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from tests.labs.kubernetes.store.object_store import ObjectStore

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
DEFINITIONS = Path(os.environ.get("AUTOTRAIN_CRDS", ROOT.parent / "shared" / "reference" / "crds"))
OLDER = {"podTemplateOverrides"}  # fields of releases of Trainer before the definitions'


def read_all(text: str) -> list[dict]:
    return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def manifests() -> list[dict]:
    found = read_all((GOLDEN / "kubernetes" / "job.yaml").read_text())
    for path in sorted((GOLDEN / "kubernetes").glob("*.json")):
        found += json.loads(path.read_text())
    for objects in json.loads((GOLDEN / "kubeflow.json").read_text()).values():
        found += objects
    return [manifest for manifest in found if not OLDER & manifest.get("spec", {}).keys()]


def define(store: ObjectStore) -> None:
    for path in sorted(DEFINITIONS.glob("*.yaml")):
        for definition in read_all(path.read_text()):
            store.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition)


def send(store: ObjectStore, requests: Requests, manifest: dict) -> str:
    """Return what is wrong with a manifest; one of a kind that is not defined has nothing wrong."""
    resource = store.resources.of_kind(manifest["apiVersion"], manifest["kind"])
    if resource is None:
        return ""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    path = f"{root}/namespaces/{manifest['metadata']['namespace']}/{resource.plural}"
    answer = requests("POST", path, manifest, fieldValidation="Strict", dryRun="All")
    return "" if answer.code == 201 else f"{manifest['kind']}: {answer.message}"


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason="the operators' definitions are not at hand")
def test_golden_manifests_are_taken_by_the_operators_own_definitions(double: Double) -> None:
    define(double.store)
    found = manifests()
    for namespace in {manifest["metadata"]["namespace"] for manifest in found}:
        double.store.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    requests = Requests(double.api.kubeconfig())
    faults = {send(double.store, requests, manifest) for manifest in found}
    assert faults == {""}
    defined = {"Job", "PyTorchJob", "TrainJob", "AdaptDLJob", "Framework"}
    assert {manifest["kind"] for manifest in found} >= defined
    assert defined <= {resource.kind for resource in double.store.resources}
