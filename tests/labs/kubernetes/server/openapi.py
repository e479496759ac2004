"""The schemas of custom kinds, as OpenAPI documents of version 3; nobody asks for those of built-in kinds."""

from __future__ import annotations

import hashlib
import json

from tests.labs.kubernetes.objects.resources import ResourceTable
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.discovery import VERSION
from tests.labs.kubernetes.validation.schemas import Schemas

_KINDS = "x-kubernetes-group-version-kind"


def index(resources: ResourceTable) -> Json:
    """Return the documents; their addresses change with their content."""
    found: Json = {}
    for version in sorted({one.api_version for one in resources if resources.schema(one) is not None}):
        content = json.dumps(document(resources, version), sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest().upper()
        found[f"apis/{version}"] = {"serverRelativeURL": f"/openapi/v3/apis/{version}?hash={digest}"}
    return {"paths": found}


def document(resources: ResourceTable, api_version: str) -> Json:
    """Return the document of a group and version; without schemas where it has no custom kind."""
    schemas = Schemas(resources)
    found: Json = {}
    for one in resources:
        if one.api_version == api_version and resources.schema(one) is not None:
            kind = {"group": one.group, "version": one.version, "kind": one.kind}
            found[schemas.name(one)] = schemas.of(one) | {_KINDS: [kind]}
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": {}, "components": {"schemas": found}}
