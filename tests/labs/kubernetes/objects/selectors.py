"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.labs.kubernetes.objects.errors import bad_request
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

Matches = Callable[[Json], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALITY = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>[A-Za-z0-9._-]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[A-Za-z0-9./_-]+)$")
_FIELD = re.compile(r"^(?P<key>[^!=]+)(?P<op>==|=|!=)(?P<value>.*)$")
_ALWAYS = ("metadata.name", "metadata.namespace")
_FIELDS = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
        "status.podIP",
    ),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
    ),
    "jobs": ("status.successful",),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Requirement:
    """Requirement for one key: one of the values, or none of them; without values: there, or not there."""

    key: str
    values: frozenset[str] | None
    negated: bool

    def met(self, value: str | None) -> bool:
        """Return whether a value, None: not there, is as required."""
        found = value is not None if self.values is None else value in self.values
        return found != self.negated


def label_matches(selector: str) -> Matches:
    """Return whether an object has the labels of a selector.

    Raises:
        ApiError: 400: It is none.
    """
    requirements = [_label_requirement(part) for part in _split(selector)]

    def matches(found: Json) -> bool:
        labels = found["metadata"].get("labels") or {}
        return all(item.met(labels.get(item.key)) for item in requirements)

    return matches


def field_matches(resource: Resource, selector: str) -> Matches:
    """Return whether an object has the fields of a selector.

    Raises:
        ApiError: 400: It is none, or names a field that cannot be selected by.
    """
    requirements = [_field_requirement(resource, part) for part in selector.split(",") if part]

    def matches(found: Json) -> bool:
        return all(item.met(_value(found, item.key)) for item in requirements)

    return matches


def _split(selector: str) -> list[str]:
    parts = re.split(r",(?![^(]*\))", selector)
    return [part.strip() for part in parts if part.strip()]


def _label_requirement(part: str) -> Requirement:
    if found := _SET.match(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], values, found["op"] == "notin")
    if found := _EQUALITY.match(part):
        return Requirement(found["key"], frozenset({found["value"]}), found["op"] == "!=")
    if found := _EXISTS.match(part):
        return Requirement(found["key"], None, found["not"] == "!")
    raise bad_request(f"unable to parse requirement: found {part!r}, expected: a label selector")


def _field_requirement(resource: Resource, part: str) -> Requirement:
    found = _FIELD.match(part)
    if not found:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    if found["key"] not in (*_ALWAYS, *_FIELDS.get(resource.plural, ())):
        raise bad_request(f"field label not supported: {found['key']}")
    return Requirement(found["key"], frozenset({found["value"]}), found["op"] == "!=")


def _value(found: Json, path: str) -> str:
    value: object = found
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
