"""The golden manifests of Kubeflow's kinds against the operators' own definitions, where those are at hand.

`AUTOTRAIN_CRDS` names a folder with CustomResourceDefinitions as YAML files; of a kind in several releases those count
that know the fields by which the manifests of releases differ.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

GOLDEN = Path(__file__).parents[4] / "golden" / "kubeflow.json"
FOLDER = os.environ.get("AUTOTRAIN_CRDS", "")
# What tells releases of the same version apart.
TELLING = ("podTemplateOverrides", "runtimePatches", "runLauncherAsWorker")

Json = dict[str, Any]


def strict(schema: Json) -> Json:
    """Return a schema of a CRD as JSON Schema that refuses unknown fields."""
    found = dict(schema)
    if found.pop("x-kubernetes-int-or-string", False):
        return {"type": ["integer", "string"]}
    if "items" in found:
        found["items"] = strict(found["items"])
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = strict(found["additionalProperties"])
    if "properties" in found:
        found["properties"] = {name: strict(inner) for name, inner in found["properties"].items()}
        if not found.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    return found


def definitions() -> Iterator[tuple[str, str, Json]]:
    """Yield API version, kind and schema of each version that is served."""
    for file in sorted(Path(FOLDER).glob("*.yaml")):
        for document in YAML(typ="safe", pure=False).load_all(file.read_text(encoding="utf-8")):
            if document and document.get("kind") == "CustomResourceDefinition":
                spec = document["spec"]
                for version in spec["versions"]:
                    api_version = f"{spec['group']}/{version['name']}"
                    yield api_version, spec["names"]["kind"], version["schema"]["openAPIV3Schema"]


def fits(schema: Json, manifest: Json) -> bool:
    """Return whether a definition is of the release that a manifest is for."""
    known = schema["properties"]["spec"]["properties"]
    return all(name in known for name in TELLING if name in manifest["spec"])


@pytest.mark.skipif(not FOLDER, reason="AUTOTRAIN_CRDS names no folder with the operators' definitions")
def test_every_golden_manifest_is_what_the_operators_define() -> None:
    defined = list(definitions())
    checked = set()
    for case, manifests in json.loads(GOLDEN.read_text(encoding="utf-8")).items():
        for manifest in manifests:
            own = (manifest["apiVersion"], manifest["kind"])
            for api_version, kind, schema in defined:
                if (api_version, kind) == own and fits(schema, manifest):
                    jsonschema.validate(
                        manifest, strict({**schema, "properties": {**schema["properties"], "metadata": {}}})
                    )
                    checked.add(case)
    assert checked
