"""Faults of the spec of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation import names
from tests.labs.kubernetes.validation.container_rules import container_causes

_RESTART = ("Always", "OnFailure", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def required(path: str, why: str = "") -> Cause:
    """Return a field that is not there."""
    return Cause(path, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def unsupported(path: str, value: object, supported: Sequence[str]) -> Cause:
    """Return a value that is not among those allowed."""
    choices = ", ".join(f'"{item}"' for item in sorted(supported))
    return Cause(path, f'Unsupported value: "{value}": supported values: {choices}', "FieldValueNotSupported")


def duplicate(path: str, value: str) -> Cause:
    """Return a value that is there twice."""
    return Cause(path, f'Duplicate value: "{value}"', "FieldValueDuplicate")


def pod_causes(spec: Json, path: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod's spec."""
    yield from _choices(spec, path)
    yield from _volumes(spec, f"{path}.volumes")
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or []}
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            place = f"{path}.{kind}[{index}]"
            yield from container_causes(container, place, volumes)
            if container.get("name") in seen:
                yield duplicate(f"{place}.name", container["name"])
            seen.add(container.get("name", ""))


def _choices(spec: Json, path: str) -> Iterator[Cause]:
    if spec["restartPolicy"] not in _RESTART:
        yield unsupported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield Cause(
            f"{path}.activeDeadlineSeconds", f"Invalid value: {deadline}: must be between 1 and 2147483647, inclusive"
        )
    if spec["terminationGracePeriodSeconds"] < 0:
        grace = spec["terminationGracePeriodSeconds"]
        yield Cause(
            f"{path}.terminationGracePeriodSeconds", f"Invalid value: {grace}: must be greater than or equal to 0"
        )
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from names.label_name(f"{path}.{key}", spec[key])
    yield from names.label_causes(f"{path}.nodeSelector", spec.get("nodeSelector"))
    for index, item in enumerate(spec.get("tolerations") or []):
        yield from _toleration(item, f"{path}.tolerations[{index}]")


def _toleration(item: Json, path: str) -> Iterator[Cause]:
    operator = item.get("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and item.get("value"):
        yield Cause(f"{path}.operator", "Invalid value: \"Exists\": value must be empty when `operator` is 'Exists'")
    if not item.get("key") and operator != "Exists":
        yield Cause(f"{path}.operator", 'Invalid value: "": operator must be Exists when `key` is empty')
    if item.get("effect") and item["effect"] not in _EFFECTS:
        yield unsupported(f"{path}.effect", item["effect"], _EFFECTS)


def _volumes(spec: Json, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or []):
        place = f"{path}[{index}]"
        name = volume.get("name") or ""
        if not name:
            yield required(f"{place}.name")
        else:
            yield from names.label_name(f"{place}.name", name)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        for source in sources[1:]:
            yield Cause(
                f"{place}.{source}", "Forbidden: may not specify more than 1 volume type", "FieldValueForbidden"
            )
