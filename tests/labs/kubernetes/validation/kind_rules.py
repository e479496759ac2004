"""Faults of objects of built-in kinds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from tests.labs.kubernetes.objects import resources
from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation import names
from tests.labs.kubernetes.validation.pod_rules import pod_causes, required

_SIZE_LIMIT = 1024 * 1024
_TOO_LONG = f"Too long: may not be more than {_SIZE_LIMIT} bytes"
_COUNTS = (
    "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def kind_causes(resource: Resource, found: Json) -> Iterator[Cause]:
    """Everything that is wrong with an object, besides its types."""
    yield from _metadata(resource, found["metadata"])
    check = _RULES.get(resource.key)
    if check:
        yield from check(found)


def _metadata(resource: Resource, metadata: Json) -> Iterator[Cause]:
    name = metadata["name"]
    if resource.key == resources.SERVICES.key:
        yield from names.label_1035_name("metadata.name", name)
    elif resource.key == resources.NAMESPACES.key:
        yield from names.label_name("metadata.name", name)
    elif resource.group != "rbac.authorization.k8s.io":
        yield from names.subdomain_name("metadata.name", name)
    yield from names.label_causes("metadata.labels", metadata.get("labels"))
    yield from names.annotation_causes("metadata.annotations", metadata.get("annotations"))
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield Cause(f"metadata.ownerReferences[{index}].{key}", 'Invalid value: "": must not be empty')


def _pod(pod: Json) -> Iterator[Cause]:
    return pod_causes(pod["spec"], "spec")


def _template(found: Json) -> Iterator[Cause]:
    template = found["spec"].get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    yield from names.label_causes("spec.template.labels", labels)
    yield from names.annotation_causes("spec.template.annotations", (template.get("metadata") or {}).get("annotations"))
    if "spec" in template:
        yield from pod_causes(template["spec"], "spec.template.spec")
    else:
        yield required("spec.template.spec.containers")


def _job(job: Json) -> Iterator[Cause]:
    spec = job["spec"]
    yield from _template(job)
    for name in _COUNTS:
        if spec.get(name) is not None and spec[name] < 0:
            yield Cause(f"spec.{name}", f"Invalid value: {spec[name]}: must be greater than or equal to 0")
    policy = (spec["template"].get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    if spec.get("podFailurePolicy") and policy != "Never":
        told = f'Invalid value: "{policy}": only "Never" is supported when podFailurePolicy is specified'
        yield Cause("spec.template.spec.restartPolicy", told)
    if spec.get("completionMode") == "Indexed":
        yield from _indexed_job(job, spec)
    elif spec.get("backoffLimitPerIndex") is not None:
        yield Cause("spec.backoffLimitPerIndex", "Invalid value: requires indexed completion mode")


def _indexed_job(job: Json, spec: Json) -> Iterator[Cause]:
    if spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
        return
    name = f"{job['metadata']['name']}-{max(spec['completions'] - 1, 0)}"
    if list(names.label_name("metadata.name", name)):
        told = f'Invalid value: "{job["metadata"]["name"]}": will not able to create pod with invalid DNS label: {name}'
        yield Cause("metadata.name", told)


def _config_map(found: Json) -> Iterator[Cause]:
    data = found.get("data") or {}
    binary = found.get("binaryData") or {}
    for key in data:
        yield from names.config_key(f"data[{key}]", key)
        if key in binary:
            yield Cause(f"data[{key}]", f'Invalid value: "{key}": duplicate of key present in binaryData')
    for key in binary:
        yield from names.config_key(f"binaryData[{key}]", key)
    size = sum(len(value.encode()) for value in data.values()) + sum(_decoded_size(value) for value in binary.values())
    if size > _SIZE_LIMIT:
        yield Cause("[]", _TOO_LONG, "FieldValueTooLong")


def _secret(found: Json) -> Iterator[Cause]:
    data = found.get("data") or {}
    for key in data:
        yield from names.config_key(f"data[{key}]", key)
    if sum(_decoded_size(value or "") for value in data.values()) > _SIZE_LIMIT:
        yield Cause("data", _TOO_LONG, "FieldValueTooLong")


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def not_base64(found: Json) -> str:
    """Return the key of a value that is not base64; "": all are."""
    encoded = dict(found.get("binaryData") or {})
    if found.get("kind") == "Secret":
        encoded |= found.get("data") or {}
    for key, value in encoded.items():
        try:
            base64.b64decode(value or "", validate=True)
        except binascii.Error:
            return str(key)
    return ""


def _service(service: Json) -> Iterator[Cause]:
    spec = service["spec"]
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    for index, port in enumerate(ports):
        place = f"spec.ports[{index}]"
        if not 1 <= port.get("port", 0) <= 65535:
            yield Cause(
                f"{place}.port", f"Invalid value: {port.get('port', 0)}: must be between 1 and 65535, inclusive"
            )
        if len(ports) > 1 and not port.get("name"):
            yield required(f"{place}.name")


def _claim(claim: Json) -> Iterator[Cause]:
    if not claim["spec"].get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    wanted = ((claim["spec"].get("resources") or {}).get("requests")) or {}
    if "storage" not in wanted:
        yield required("spec.resources[storage]")


_RULES: dict[tuple[str, str], Callable[[Json], Iterator[Cause]]] = {
    resources.PODS.key: _pod,
    resources.JOBS.key: _job,
    resources.CONFIG_MAPS.key: _config_map,
    resources.SECRETS.key: _secret,
    resources.SERVICES.key: _service,
    resources.PERSISTENT_VOLUME_CLAIMS.key: _claim,
}
