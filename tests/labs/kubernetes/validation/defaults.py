"""Values that the server fills into new objects of built-in kinds."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable

from tests.labs.kubernetes.objects import resources
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.pod_defaults import complete_pod, complete_template, fill

_UNLIMITED = 2**31 - 1


def _complete_job(job: Json) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    fill(spec, {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False})
    fill(spec, {"backoffLimit": _UNLIMITED if per_index else 6})
    fill(spec, {"podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"})
    template = spec.setdefault("template", {})
    complete_template(template)
    if not job["metadata"].get("labels") and (template.get("metadata") or {}).get("labels"):
        job["metadata"]["labels"] = dict(template["metadata"]["labels"])
    if not spec["manualSelector"]:
        _select_own_pods(job, spec, template)
    job["status"] = {}


def _select_own_pods(job: Json, spec: Json, template: Json) -> None:
    uid = job["metadata"]["uid"]
    name = job["metadata"]["name"]
    own = {"controller-uid": uid, "job-name": name}
    own |= {f"batch.kubernetes.io/{key}": value for key, value in own.items()}
    metadata = template.get("metadata") or {}
    template["metadata"] = metadata | {"labels": (metadata.get("labels") or {}) | own}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _complete_secret(secret: Json) -> None:
    texts = secret.pop("stringData", None) or {}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    if encoded:
        secret["data"] = (secret.get("data") or {}) | encoded
    fill(secret, {"type": "Opaque"})


def _complete_claim(claim: Json) -> None:
    fill(claim.setdefault("spec", {}), {"volumeMode": "Filesystem"})
    claim["status"] = {"phase": "Pending"}


def _complete_namespace(namespace: Json) -> None:
    labels = namespace["metadata"].get("labels") or {}
    namespace["metadata"]["labels"] = labels | {"kubernetes.io/metadata.name": namespace["metadata"]["name"]}
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _complete_definition(definition: Json) -> None:
    spec = definition.setdefault("spec", {})
    names = spec.get("names") or {}
    if names.get("kind"):
        fill(names, {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"})
    made = definition["metadata"]["creationTimestamp"]
    conditions = [
        {"type": name, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": made}
        for name, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted"))
    ]
    stored = [item["name"] for item in spec.get("versions") or [] if item.get("storage")]
    definition["status"] = {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def _complete_quota(quota: Json) -> None:
    """Add what its controller counts a moment later."""
    hard = quota.setdefault("spec", {}).get("hard") or {}
    quota["status"] = {"hard": dict(hard), "used": dict.fromkeys(hard, "0")}


def _complete_workload(found: Json) -> None:
    template = found.setdefault("spec", {}).get("template")
    if isinstance(template, dict):
        complete_template(template)
    found["status"] = {}


class Defaults:
    """Fills new objects. Services get addresses one after the other."""

    def __init__(self) -> None:
        self._addresses = itertools.count(10)
        self._complete: dict[tuple[str, str], Callable[[Json], None]] = {
            resources.PODS.key: complete_pod,
            resources.JOBS.key: _complete_job,
            resources.SECRETS.key: _complete_secret,
            resources.SERVICES.key: self._complete_service,
            resources.RESOURCE_QUOTAS.key: _complete_quota,
            resources.NAMESPACES.key: _complete_namespace,
            resources.PERSISTENT_VOLUME_CLAIMS.key: _complete_claim,
            resources.CUSTOM_RESOURCE_DEFINITIONS.key: _complete_definition,
            resources.DEPLOYMENTS.key: _complete_workload,
            resources.STATEFUL_SETS.key: _complete_workload,
            resources.REPLICA_SETS.key: _complete_workload,
        }

    def fill(self, resource: Resource, found: Json) -> None:
        """Complete a new object."""
        complete = self._complete.get(resource.key)
        if complete:
            complete(found)

    def _complete_service(self, service: Json) -> None:
        spec = service.setdefault("spec", {})
        fill(spec, {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"})
        fill(spec, {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
        if not spec.get("clusterIP"):
            number = next(self._addresses)
            spec["clusterIP"] = f"10.96.{number // 250}.{number % 250 + 1}"
        fill(spec, {"clusterIPs": [spec["clusterIP"]]})
        for port in spec.get("ports") or []:
            fill(port, {"protocol": "TCP", "targetPort": port.get("port")})
        service["status"] = {"loadBalancer": {}}
