"""Reading of what a request sends: strictly, with warnings, or as it can."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.labs.kubernetes.objects.errors import ApiError, Cause, bad_request
from tests.labs.kubernetes.objects.resources import PODS, Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.fields import Decoded, FieldReader
from tests.labs.kubernetes.validation.schemas import Schemas

_LEVELS = ("", "Ignore", "Warn", "Strict")


class Decoder:
    """Reads the objects of requests."""

    def __init__(self, resources: ResourceTable) -> None:
        self.schemas = Schemas(resources)
        self._resources = resources
        self._reader = FieldReader(self.schemas)

    def prepare(self) -> None:
        """Make the schemas, which takes a second, before the first request."""
        self.schemas.of(PODS)

    def manifest(self, resource: Resource, body: Json, level: str) -> tuple[Json, Sequence[str]]:
        """Return the object of a POST or PUT without unknown fields, and the warnings about them.

        Raises:
            ApiError: 400: A field is unknown and the level is strict, or a value has a wrong type.
        """
        decoded = self._decoded(resource, body, level)
        told = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        if decoded.wrong and self._resources.schema(resource) is None:
            raise bad_request(told + decoded.wrong[0])
        if decoded.unknown and level == "Strict":
            raise bad_request(told + "strict decoding error: " + ", ".join(_unknown(decoded)))
        return decoded.value, _warnings(decoded, level)

    def patched(self, resource: Resource, found: Json, patch: object, level: str) -> tuple[Json, Sequence[str]]:
        """Return an object as a patch makes it, without unknown fields, and the warnings about them.

        Raises:
            ApiError: 422: A field is unknown and the level is strict, or a value has a wrong type.
        """
        decoded = self._decoded(resource, found, level)
        if decoded.wrong and self._resources.schema(resource) is None:
            raise _bad_patch(patch, decoded.wrong[0])
        if decoded.unknown and level == "Strict":
            raise _bad_patch(patch, "strict decoding error: " + ", ".join(_unknown(decoded)))
        return decoded.value, _warnings(decoded, level)

    def _decoded(self, resource: Resource, body: Json, level: str) -> Decoded:
        if level not in _LEVELS:
            raise bad_request(
                f'fieldValidation: Unsupported value: "{level}": supported values: "Ignore", "Strict", "Warn"'
            )
        return self._reader.read(self.schemas.of(resource), body)


def _unknown(decoded: Decoded) -> list[str]:
    return [f'unknown field "{path}"' for path in decoded.unknown]


def _warnings(decoded: Decoded, level: str) -> Sequence[str]:
    return [] if level == "Ignore" else _unknown(decoded)


def _bad_patch(patch: object, why: str) -> ApiError:
    cause = Cause("patch", f'Invalid value: "{json.dumps(patch, separators=(",", ":"))}": {why}')
    details = {"causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field}]}
    return ApiError(422, "Invalid", f' "" is invalid: {cause.told}', details)
