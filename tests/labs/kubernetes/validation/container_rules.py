"""Faults of a container of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tests.labs.kubernetes.objects.errors import Cause
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation import names
from tests.labs.kubernetes.validation.quantities import amount

_PULL = ("Always", "IfNotPresent", "Never")
_STANDARD = ("cpu", "memory", "ephemeral-storage")


def container_causes(container: Json, path: str, volumes: set[str]) -> Iterator[Cause]:
    """Everything that is wrong with a container; `volumes` are those of its pod."""
    if not container.get("name"):
        yield Cause(f"{path}.name", "Required value", "FieldValueRequired")
    else:
        yield from names.label_name(f"{path}.name", container["name"])
    if not container.get("image"):
        yield Cause(f"{path}.image", "Required value", "FieldValueRequired")
    if container["imagePullPolicy"] not in _PULL:
        told = (
            f'Unsupported value: "{container["imagePullPolicy"]}": supported values: "Always", "IfNotPresent", "Never"'
        )
        yield Cause(f"{path}.imagePullPolicy", told, "FieldValueNotSupported")
    yield from _mounts(container, f"{path}.volumeMounts", volumes)
    for index, variable in enumerate(container.get("env") or []):
        yield from _variable(variable, f"{path}.env[{index}]")
    yield from _resources(container["resources"], f"{path}.resources")


def _mounts(container: Json, path: str, volumes: set[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        place = f"{path}[{index}]"
        if mount.get("name") not in volumes:
            yield Cause(f"{place}.name", f'Not found: "{mount.get("name")}"', "FieldValueNotFound")
        where = mount.get("mountPath")
        if not where:
            yield Cause(f"{place}.mountPath", "Required value", "FieldValueRequired")
        elif where in seen:
            yield Cause(f"{place}.mountPath", f'Invalid value: "{where}": must be unique')
        seen.add(where or "")
        if str(mount.get("subPath") or "").startswith("/"):
            yield Cause(f"{place}.subPath", f'Invalid value: "{mount["subPath"]}": must be a relative path')


def _variable(variable: Json, path: str) -> Iterator[Cause]:
    name = variable.get("name") or ""
    if not name:
        yield Cause(f"{path}.name", "Required value", "FieldValueRequired")
    elif "=" in name or not name.isprintable():
        rule = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield Cause(f"{path}.name", f'Invalid value: "{name}": {rule}')
    if variable.get("value") and variable.get("valueFrom"):
        yield Cause(f"{path}.valueFrom", 'Invalid value: "": may not be specified when `value` is not empty')


def _resources(resources: Json, path: str) -> Iterator[Cause]:
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    for kind, found in (("limits", limits), ("requests", requests)):
        for name, value in found.items():
            yield from _resource(name, value, f"{path}.{kind}[{name}]")
    for name, value in requests.items():
        yield from _request(name, value, limits, f"{path}.requests")
    for name in limits:
        if _is_extended(name) and name not in requests:
            yield Cause(f"{path}.requests", f"Required value: {name} request must be set", "FieldValueRequired")


def _is_extended(name: str) -> bool:
    return name not in _STANDARD and not name.startswith("hugepages-")


def _number(value: object) -> Decimal | None:
    try:
        return amount(str(value))
    except ValueError:
        return None


def _resource(name: str, value: object, path: str) -> Iterator[Cause]:
    number = _number(value)
    if number is None:
        yield Cause(path, f'Invalid value: "{value}": is no quantity')
        return
    if number < 0:
        yield Cause(path, f'Invalid value: "{value}": must be greater than or equal to 0')
    if not _is_extended(name):
        return
    if "/" not in name:
        yield Cause(path, f'Invalid value: "{name}": must be a standard resource type or fully qualified')
    if number != int(number):
        yield Cause(path, f'Invalid value: "{value}": must be an integer')


def _request(name: str, value: object, limits: Json, path: str) -> Iterator[Cause]:
    wanted = _number(value)
    limit = _number(limits[name]) if name in limits else None
    if limit is None and _is_extended(name) and name not in limits:
        yield Cause(
            f"{path}[{name}]",
            "Required value: Limit must be set for non overcommitable resources",
            "FieldValueRequired",
        )
    if wanted is None or limit is None:
        return
    if _is_extended(name) and wanted != limit:
        yield Cause(path, f'Invalid value: "{value}": must be equal to {name} limit of {limits[name]}')
    elif wanted > limit:
        yield Cause(path, f'Invalid value: "{value}": must be less than or equal to {name} limit of {limits[name]}')
