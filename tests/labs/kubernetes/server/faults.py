"""Faults that a test asks for."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass

from tests.labs.kubernetes.objects.errors import ApiError

_REASONS = {
    401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests",
    500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(slots=True)
class Fault:
    """The next `count` requests whose verb and path match are refused."""

    code: int
    retry_after_s: int | None
    match: str
    count: int


class Faults:
    """Refusals of the next requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Refuse some of the next requests."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Refuse no more."""
        with self._lock:
            self._faults = []

    def check(self, verb: str, path: str) -> None:
        """Refuse a request if asked to.

        Raises:
            ApiError: As asked for.
        """
        with self._lock:
            for fault in self._faults:
                if re.search(fault.match, f"{verb} {path}"):
                    self._use(fault)
                    raise _refusal(fault)

    def _use(self, fault: Fault) -> None:
        fault.count -= 1
        if fault.count <= 0:
            self._faults.remove(fault)


def _refusal(fault: Fault) -> ApiError:
    reason = _REASONS.get(fault.code, "InternalError")
    message = "too many requests, please try again later" if fault.code == 429 else f"the server says {reason}"
    if fault.retry_after_s is None:
        return ApiError(fault.code, reason, message)
    details = {"retryAfterSeconds": fault.retry_after_s}
    return ApiError(fault.code, reason, message, details, {"Retry-After": str(fault.retry_after_s)})
