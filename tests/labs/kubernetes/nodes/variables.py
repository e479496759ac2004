"""The environment of a container: values, references, and `$(NAME)` in them."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping

from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, SECRETS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.quantities import amount

_REFERENCE = re.compile(r"\$(\$|\(([^()$]*)\))")
_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class ConfigError(Exception):
    """A container cannot be started since something that it refers to is not there; the message is the kubelet's."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; names that are not known stay, and `$$` is a dollar."""

    def replacement(found: re.Match[str]) -> str:
        if found.group(1) == "$":
            return "$"
        return variables.get(found.group(2), found.group(0))

    return _REFERENCE.sub(replacement, text)


def data_of(kind: str, found: Json) -> dict[str, bytes]:
    """Return the contents of a ConfigMap or Secret."""
    if kind == "Secret":
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return binary | {key: value.encode() for key, value in (found.get("data") or {}).items()}


def read_data(store: ObjectStore, kind: str, namespace: str, reference: Json) -> dict[str, bytes] | None:
    """Return the contents of a referenced ConfigMap or Secret; None: it is not there, and may be missing.

    Raises:
        ConfigError: It is not there.
    """
    name = reference.get("name") or reference.get("secretName") or ""
    resource = SECRETS if kind == "Secret" else CONFIG_MAPS
    try:
        return data_of(kind, store.get(resource, namespace, name))
    except ApiError:
        if reference.get("optional"):
            return None
        raise ConfigError(f'{kind.lower()} "{name}" not found') from None


def field(pod: Json, path: str) -> str:
    """Return a field of a pod as the downward API gives it."""
    keyed = _KEY.fullmatch(path)
    if keyed:
        return str((pod["metadata"].get(keyed.group(1)) or {}).get(keyed.group(2), ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = pod["metadata"].get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
    if path == "status.podIPs":
        return ",".join(entry["ip"] for entry in pod["status"].get("podIPs", ()))
    value: object = pod
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def resource_field(pod: Json, container: Json, reference: Json) -> str:
    """Return a limit or request of a container, as a number of its divisor."""
    name = reference.get("containerName", container.get("name"))
    found = next(item for item in pod["spec"]["containers"] if item["name"] == name)
    kind, _, resource = reference["resource"].partition(".")
    amounts = found.get("resources", {}).get(kind, {})
    divisor = amount(reference.get("divisor") or 1) or amount(1)
    return str(math.ceil(amount(amounts.get(resource, 0)) / divisor))


class Environment:
    """Resolves the environment of the containers of a pod."""

    def __init__(self, store: ObjectStore, pod: Json) -> None:
        self._store = store
        self._pod = pod
        self._namespace = pod["metadata"]["namespace"]
        self._sources: dict[str, Callable[[Json, Json], str | None]] = {
            "fieldRef": lambda reference, _: field(pod, reference["fieldPath"]),
            "resourceFieldRef": lambda reference, container: resource_field(pod, container, reference),
            "configMapKeyRef": lambda reference, _: self._key("ConfigMap", reference),
            "secretKeyRef": lambda reference, _: self._key("Secret", reference),
        }

    def _key(self, kind: str, reference: Json) -> str | None:
        data = read_data(self._store, kind, self._namespace, reference)
        if data is not None and reference["key"] in data:
            return data[reference["key"]].decode(errors="replace")
        if reference.get("optional"):
            return None
        raise ConfigError(f"couldn't find key {reference['key']} in {kind} {self._namespace}/{reference['name']}")

    def of(self, container: Json, defaults: Mapping[str, str]) -> dict[str, str]:
        """All variables of a container.

        Raises:
            ConfigError: Something is not there.
        """
        found = dict(defaults)
        for source in container.get("envFrom", ()):
            kind, key = ("Secret", "secretRef") if "secretRef" in source else ("ConfigMap", "configMapRef")
            data = read_data(self._store, kind, self._namespace, source[key]) or {}
            prefix = source.get("prefix", "")
            found |= {prefix + name: value.decode(errors="replace") for name, value in data.items()}
        for entry in container.get("env", ()):
            value = self._value(entry, container, found)
            if value is not None:
                found[entry["name"]] = value
        return found

    def _value(self, entry: Json, container: Json, so_far: Mapping[str, str]) -> str | None:
        for kind, reference in (entry.get("valueFrom") or {}).items():
            return self._sources[kind](reference, container)
        return expand(entry.get("value", ""), so_far)
