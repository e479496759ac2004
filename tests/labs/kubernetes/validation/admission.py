"""All that an object goes through before it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.labs.kubernetes.objects.errors import ApiError, Cause, bad_request, forbidden, invalid
from tests.labs.kubernetes.objects.resources import PODS, PRIORITY_CLASSES, SERVICE_ACCOUNTS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.defaults import Defaults
from tests.labs.kubernetes.validation.immutability import changed_causes, custom_causes, has_rules
from tests.labs.kubernetes.validation.kind_rules import kind_causes, not_base64
from tests.labs.kubernetes.validation.pod_security import check_pod_security
from tests.labs.kubernetes.validation.present import PresentObjects
from tests.labs.kubernetes.validation.quota import check_quota
from tests.labs.kubernetes.validation.schema_rules import SchemaRules
from tests.labs.kubernetes.validation.schemas import Schemas
from tests.labs.kubernetes.validation.zero_values import fill_zero_values

_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_CUSTOM_LIMIT = 1536 * 1024
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Rules:
    """Completion and refusals of a cluster without webhooks."""

    def __init__(self, store: PresentObjects) -> None:
        self._store = store
        self._schemas = Schemas(store.resources)
        self._values = SchemaRules(self._schemas)
        self._defaults = Defaults()

    def admit(self, resource: Resource, found: Json, previous: Json | None, subresource: str) -> None:
        """Complete an object in place.

        Raises:
            ApiError: 400, 403 or 422: It is refused.
        """
        custom = self._store.resources.schema(resource) is not None
        if not custom and found.get("status"):
            status = self._schemas.of(resource)["properties"]["status"]
            fill_zero_values(self._schemas, status, found["status"])
        if subresource and not custom:
            return  # what controllers write is theirs
        self._complete(resource, found, previous, custom=custom)
        name = found["metadata"]["name"]
        if not custom and (key := not_base64(found)):
            told = f'{resource.kind} in version "v1" cannot be handled as a {resource.kind}'
            raise bad_request(f"{told}: illegal base64 data at input byte 0 ({key})")
        causes = list(self._causes(resource, found, previous, custom=custom))
        if causes:
            raise invalid(resource, name, causes)
        if previous is None:
            check_pod_security(self._store, resource, found)
            check_quota(self._store, resource, found)

    def _complete(self, resource: Resource, found: Json, previous: Json | None, *, custom: bool) -> None:
        if custom:
            self._values.fill(self._schemas.of(resource), found)
            if len(json.dumps(found)) > _CUSTOM_LIMIT:
                raise ApiError(500, "InternalError", "etcdserver: request is too large")
        elif previous is None:
            self._defaults.fill(resource, found)
            if resource.key == PODS.key:
                self._complete_pod(found)

    def _causes(self, resource: Resource, found: Json, previous: Json | None, *, custom: bool) -> Iterator[Cause]:
        yield from kind_causes(resource, found)
        if custom:
            schema = self._schemas.of(resource)
            causes = list(self._values.causes(schema, found))
            yield from causes
            if causes and has_rules(schema):
                yield Cause("<nil>", _UNCHECKED)
            own = self._store.resources.schema(resource) or {}
            metadata = own.get("properties", {}).get("metadata", {})  # may limit names
            yield from self._values.causes(metadata, found["metadata"], "metadata")
            if previous is not None:
                yield from custom_causes(schema, found, previous)
        elif previous is not None:
            yield from changed_causes(resource, found, previous)

    def _complete_pod(self, pod: Json) -> None:
        spec = pod["spec"]
        name = pod["metadata"]["name"]
        account = spec["serviceAccountName"]
        namespace = pod["metadata"]["namespace"]
        if not self._has_account(namespace, account):
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden(PODS, name, why)
        if spec.get("priorityClassName"):
            spec["priority"] = self._priority(name, spec["priorityClassName"])

    def _priority(self, pod: str, name: str) -> int:
        if name in _SYSTEM_PRIORITIES:
            return _SYSTEM_PRIORITIES[name]
        for item in self._store.shared_list(PRIORITY_CLASSES, None)[0]:
            if item["metadata"]["name"] == name:
                return int(item["value"])
        raise forbidden(PODS, pod, f"no PriorityClass with name {name} was found")

    def _has_account(self, namespace: str, name: str) -> bool:
        accounts, _ = self._store.shared_list(SERVICE_ACCOUNTS, namespace)
        return any(item["metadata"]["name"] == name for item in accounts)
