"""Errors of the API server, as it says them."""

from __future__ import annotations

import json
import re

from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_MOST_TEXT = 2000
# Of a custom kind, that some rules wait for the other faults to be mended: it is no fault of its own.
_UNCHECKED = re.compile(r', <nil>: Invalid value: "?null"?: some validation rules were not checked[^],]*')


class ApiRefusedError(BackendError):
    """The API server has refused a request.

    Args:
        code: The HTTP status.
        reason: One word, such as NotFound or AlreadyExists.
        message: What the server says.
        details: What it says in fields.
    """

    def __init__(self, code: int, reason: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__(f"The cluster refuses: {message.rstrip('.')} ({code} {reason}).", "", _action(code))
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def __reduce__(self) -> tuple[type[ApiRefusedError], tuple[object, ...]]:  # type: ignore[override] # made from others
        return type(self), (self.code, self.reason, self.message, self.details)


def _action(code: int) -> str:
    if code == 401:
        return "Log in to the cluster again, as for `kubectl`."
    if code == 403:
        return "Ask for the right, or for room in the quota: `%autotrain backends check` says what is missing."
    return "Correct the options of the backend, or ask who runs the cluster."


def of_answer(code: int, body: bytes) -> ApiRefusedError:
    """The error of an answer."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body.decode(errors="replace").strip()[:_MOST_TEXT]
        return ApiRefusedError(code, "", text or "no reason is given")
    details = status.get("details")
    message = _UNCHECKED.sub("", str(status.get("message") or "no reason is given"))
    return ApiRefusedError(
        code, str(status.get("reason") or ""), message[:_MOST_TEXT], details if isinstance(details, dict) else {}
    )  # fmt: skip
