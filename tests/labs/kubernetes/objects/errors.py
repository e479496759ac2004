"""Refusals of the API server, as Status objects say them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json


@dataclass(frozen=True, slots=True)
class Cause:
    """Fault of one field."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    @property
    def told(self) -> str:
        """As the message of a refusal lists it."""
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A request that the API server refuses.

    Attributes:
        code: The HTTP status.
        reason: The machine's word for it, such as NotFound.
        message: The sentence.
        details: `details` of the Status.
        headers: Additional headers of the response, such as Retry-After.
    """

    def __init__(
        self, code: int, reason: str, message: str, details: Json | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.headers = headers or {}

    def status(self) -> Json:
        """Return the Status object of the response."""
        found: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        found |= {"message": self.message, "reason": self.reason, "code": self.code}
        if self.details:
            found["details"] = self.details
        return found


def _details(resource: Resource, name: str) -> Json:
    found: Json = {"name": name, "kind": resource.plural}
    if resource.group:
        found["group"] = resource.group
    return {key: value for key, value in found.items() if value}


def not_found(resource: Resource, name: str) -> ApiError:
    """404: there is no such object."""
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: there is one of this name."""
    return ApiError(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """409: the object is another one than the request expects."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """403: not allowed by quota, namespace or permission."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(resource, name))


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """422, with all that is wrong."""
    told = [cause.told for cause in causes]
    text = told[0] if len(told) == 1 else "[" + ", ".join(told) + "]"
    message = f'{resource.kind}{_in_group(resource)} "{name}" is invalid: {text}'
    details: Json = {"name": name, "kind": resource.kind}
    if resource.group:
        details["group"] = resource.group
    details["causes"] = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    return ApiError(422, "Invalid", message, details)


def _in_group(resource: Resource) -> str:
    return f".{resource.group}" if resource.group else ""


def expired(version: int, oldest: int) -> ApiError:
    """410: changes since a resourceVersion are no longer known."""
    return ApiError(410, "Expired", f"too old resource version: {version} ({oldest})")
