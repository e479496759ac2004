"""Kinds of values that only options of Kubernetes take: names, labels, tolerations, parts of a manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from jupyter_autotrain.backends.kubernetes.objects.pod_parts import OF_CONTAINERS, OF_PODS
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import UnfitError, expected_instead, resolve, shown

OWN_PREFIX = "jupyter-autotrain/"
MANAGED_BY = "app.kubernetes.io/managed-by"
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL_KEY = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?", re.ASCII
)
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")


def _object_name(value: object) -> str:
    text = str(value) if isinstance(value, str | int) else ""
    if not _OBJECT_NAME.fullmatch(text):
        raise UnfitError("expected a name of Kubernetes: small letters, digits and dashes", "rename it")
    return text


def from_true(value: object) -> object:
    """Take `true` for a mapping without settings."""
    return {} if value is True or (isinstance(value, str) and value.lower() == "true") else value


def _one_or_more(value: object) -> object:
    """Take one for a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _key(value: object) -> str:
    text = value if isinstance(value, str) else ""
    if not _LABEL_KEY.fullmatch(text):
        raise UnfitError("expected a key such as team or example.com/team")
    if text.startswith(OWN_PREFIX) or text == MANAGED_BY:
        raise UnfitError("expected no key that the backend sets itself", "remove it")
    return str(text)


def _word(value: object) -> str:
    """Text as written: `true` and `8` are texts where Kubernetes wants texts."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise UnfitError("expected text")
    return str(value)


def _label(value: object) -> str:
    text = _word(value)
    if not _LABEL_VALUE.fullmatch(text):
        raise UnfitError("expected at most 63 letters, digits, dots, dashes and underscores")
    return text


def _mapping(value: object) -> dict[str, Any]:
    found = resolve(value)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise UnfitError("expected a mapping, as it stands in a manifest")
    return found


def known_keys(found: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return the mapping itself.

    Raises:
        UnfitError: It has a key that is not known.
    """
    for key in found:
        if key not in known:
            expected = expected_instead(key, known)
            raise UnfitError(expected, found=f"unknown key {shown(key)}", at=(key,))
    return found


def _security(value: object) -> dict[str, Any]:
    return known_keys(_mapping(value), (*OF_PODS, *OF_CONTAINERS))


def _affinity(value: object) -> dict[str, Any]:
    return known_keys(_mapping(value), ("nodeAffinity", "podAffinity", "podAntiAffinity"))


def _pod_part(value: object) -> dict[str, Any]:
    found = _mapping(value)
    if not set(found) <= {"metadata", "spec"}:
        raise UnfitError("expected metadata or spec of a pod", "as in `pod_patch: {spec: {hostNetwork: true}}`")
    return found


def _object_part(value: object) -> dict[str, Any]:
    found = _mapping(value)
    if not set(found) <= {"metadata", "spec"}:
        raise UnfitError("expected metadata or spec of the object", "as in `patch: {spec: {backoffLimit: 2}}`")
    return found


def _toleration(value: object) -> dict[str, Any]:
    """Return one toleration: as `kubectl taint` writes it, KEY=VALUE:EFFECT, or as in a manifest."""
    if isinstance(value, dict):
        return known_keys(_mapping(value), _TOLERATION)
    text = value if isinstance(value, str) else ""
    taint, _, effect = text.partition(":")
    key, equals, wanted = taint.partition("=")
    if not _LABEL_KEY.fullmatch(key):
        raise UnfitError("expected a taint such as dedicated=gpu:NoSchedule, or {key: ..., effect: ...}")
    if effect and effect not in _EFFECTS:
        raise UnfitError(f"expected the effect {closest_match(effect, _EFFECTS) or ', '.join(_EFFECTS)}")
    found = {"key": str(key), "operator": "Equal" if equals else "Exists"}
    if equals:
        found["value"] = str(wanted)
    return {**found, "effect": str(effect)} if effect else found


_OBJECT = WithJsonSchema({"type": "object"})
ObjectName = Annotated[str, BeforeValidator(_object_name)]
ObjectNames = Annotated[tuple[ObjectName, ...], BeforeValidator(_one_or_more)]
Key = Annotated[str, BeforeValidator(_key)]
Label = Annotated[str, BeforeValidator(_label), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Word = Annotated[str, BeforeValidator(_word), WithJsonSchema({"type": ["string", "number", "boolean"]})]
SecurityContext = Annotated[dict[str, Any], BeforeValidator(_security), _OBJECT]
Affinity = Annotated[dict[str, Any], BeforeValidator(_affinity), _OBJECT]
PodPatch = Annotated[dict[str, Any], BeforeValidator(_pod_part), _OBJECT]
ObjectPatch = Annotated[dict[str, Any], BeforeValidator(_object_part), _OBJECT]
Toleration = Annotated[dict[str, Any], BeforeValidator(_toleration), WithJsonSchema({"type": ["string", "object"]})]
Tolerations = Annotated[tuple[Toleration, ...], BeforeValidator(_one_or_more)]
