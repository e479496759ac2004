"""Fields that a change leaves as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.labs.kubernetes.objects import resources
from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

_JOB_FIELDS = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SCHEDULING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")  # of a suspended Job's template
_POD_FIELDS = (
    "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates", "nodeSelector",
)  # fmt: skip
_POD_RULE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CLAIM_RULE = (
    "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)


def changed_causes(resource: Resource, found: Json, previous: Json) -> Iterator[Cause]:
    """Return what a change may not change, of built-in kinds."""
    check = _RULES.get(resource.key)
    return check(found, previous) if check else iter(())


def _immutable(path: str, value: Any) -> Cause:
    return Cause(path, f"Invalid value: {json.dumps(value)}: field is immutable")


def _without(found: Json, names: tuple[str, ...]) -> Json:
    return {key: value for key, value in found.items() if key not in names}


def _job(found: Json, previous: Json) -> Iterator[Cause]:
    new = found["spec"]
    old = previous["spec"]
    together = new.get("completionMode") == "Indexed" and new.get("completions") == new.get("parallelism")
    if new.get("completions") != old.get("completions") and not together:
        yield _immutable("spec.completions", new.get("completions"))
    for name in _JOB_FIELDS:
        if new.get(name) != old.get(name):
            yield _immutable(f"spec.{name}", new.get(name))
    if _fixed_template(new, previous) != _fixed_template(old, previous):
        yield _immutable("spec.template", new["template"])


def _fixed_template(spec: Json, previous: Json) -> Json:
    template: Json = spec.get("template") or {}
    if not previous["spec"].get("suspend") or (previous.get("status") or {}).get("startTime"):
        return template
    return {"spec": _without(template.get("spec") or {}, _SCHEDULING)}  # queues set where it may run


def _pod(found: Json, previous: Json) -> Iterator[Cause]:
    if _fixed_pod(found["spec"]) != _fixed_pod(previous["spec"]):
        yield Cause("spec", _POD_RULE, "FieldValueForbidden")


def _fixed_pod(spec: Json) -> Json:
    fixed = _without(spec, _POD_FIELDS)
    for kind in ("containers", "initContainers"):
        if fixed.get(kind):
            fixed[kind] = [_without(container, ("image",)) for container in fixed[kind]]
    return fixed


def _claim(found: Json, previous: Json) -> Iterator[Cause]:
    free = ("resources", "volumeAttributesClassName", *([] if previous["spec"].get("volumeName") else ["volumeName"]))
    if _without(found["spec"], free) != _without(previous["spec"], free):
        yield Cause("spec", _CLAIM_RULE, "FieldValueForbidden")


def _data(found: Json, previous: Json) -> Iterator[Cause]:
    if not previous.get("immutable"):
        return
    for name in ("immutable", "data", "binaryData"):
        if (found.get(name) or {}) != (previous.get(name) or {}):
            yield Cause(name, "Forbidden: field is immutable when `immutable` is set", "FieldValueForbidden")


def _secret(found: Json, previous: Json) -> Iterator[Cause]:
    if found.get("type") != previous.get("type"):
        yield _immutable("type", found.get("type"))
    yield from _data(found, previous)


_RULES: dict[tuple[str, str], Callable[[Json, Json], Iterator[Cause]]] = {
    resources.JOBS.key: _job,
    resources.PODS.key: _pod,
    resources.PERSISTENT_VOLUME_CLAIMS.key: _claim,
    resources.CONFIG_MAPS.key: _data,
    resources.SECRETS.key: _secret,
}


def has_rules(schema: Json) -> bool:
    """Return whether a custom kind has rules besides types: only objects that have these are checked for them."""
    inner = [*schema.get("properties", {}).values(), *filter(None, (schema.get("items"),))]
    return bool(schema.get("x-kubernetes-validations")) or any(has_rules(one) for one in inner)


def custom_causes(schema: Json, found: Any, previous: Any, path: str = "") -> Iterator[Cause]:
    """Yield what a change may not change, as the schema of a custom kind says by the rule `self == oldSelf`."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if rule["rule"].replace(" ", "") == "self==oldSelf" and previous is not None and found != previous:
            yield Cause(path, f"Invalid value: {_shown(found)}: {rule.get('message', 'Value is immutable')}")
    if isinstance(found, dict) and isinstance(previous, dict):
        for name, part in schema.get("properties", {}).items():
            if name in found:
                place = f"{path}.{name}" if path else name
                yield from custom_causes(part, found[name], previous.get(name), place)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return '"object"'
    return '"array"' if isinstance(value, list) else json.dumps(value)
