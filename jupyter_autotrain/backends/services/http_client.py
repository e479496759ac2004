"""Requests to the HTTP interface of a service, with the standard library: what each kind of refusal means.

A service that asks to be left alone for a while (429, `Retry-After`) is not asked before that time.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast
from urllib.parse import urlencode

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.services.service import AnswerLostError
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_MOST_ANSWER_BYTES = 256 << 20
_MOST_SHOWN = 300
_WAIT_S = 5.0  # after a 429 that does not say how long
TOO_MANY = 429
_SERVER = 500
UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
CONFLICT = 409
MASK = "***"


class RefusedError(BackendError):
    """An error of a service that answers with a code that says no.

    Args:
        code: The HTTP status.
        text: What it says.
        action: What to do next.
    """

    def __init__(self, code: int, text: str, found: str, action: str = "") -> None:
        super().__init__(found, "", action)
        self.code = code
        self.text = text


@contextmanager
def unless_gone() -> Iterator[None]:
    """Pass over that something is not at its service, or not there any more."""
    try:
        yield
    except RefusedError as error:
        if error.code != _NOT_FOUND:
            raise


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent, without credentials.

    Attributes:
        method, path: Of HTTP; the path begins with a slash.
        query: Its parameters.
        body: Its content.
        content_type: Of the body.
        headers: Of this request alone.
    """

    method: str
    path: str
    query: Mapping[str, str | int] | None = None
    body: bytes | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The path with the query."""
        return f"{self.path}?{urlencode(self.query, safe='*')}" if self.query else self.path


def json_request(method: str, path: str, content: JsonValue) -> Request:
    """Return a request with a JSON body."""
    return Request(method, path, body=json.dumps(content).encode())


class ServiceClient:
    """The common part of asking any service: the meaning of its refusals, and when it may be asked again.

    Args:
        name: The service, in messages.
        address: Where it is, such as `http://head:8265`.
        login: Says where its credentials come from, for messages.

    Attributes:
        answer_s: How long an answer may take.
    """

    answer_s = 30.0

    def __init__(self, name: str, address: str, login: str) -> None:
        self.address = address.rstrip("/")
        self._name = name
        self._login = login
        self._lock = threading.Lock()
        self._not_before_s = 0.0

    def _keep_away(self) -> None:
        with self._lock:
            left_s = self._not_before_s - time.monotonic()
        if left_s > 0:
            raise BackendUnavailableError(f"{self._name} asks not to be asked for another {left_s:.0f} s.")

    def _lost(self, reason: object) -> AnswerLostError:
        return AnswerLostError(f"{self._name} at {self.address} did not answer: {reason or type(reason).__name__}.")

    def _refusal(self, asked: str, code: int, text: str, wait_s: float = _WAIT_S) -> BackendError:
        """Return what an answer means that says no.

        Args:
            asked: The request, in messages.
            code: The HTTP status.
            text: What it says.
            wait_s: How long it wants not to be asked, where it is asked too often.
        """
        if code == TOO_MANY:
            with self._lock:
                self._not_before_s = time.monotonic() + wait_s
            return BackendUnavailableError(f"{self._name} asks to wait {wait_s:.0f} s: too many requests.")
        told = f"{self._name} answers {code} to {asked}: {_told(text)}"
        if code in {UNAUTHORIZED, _FORBIDDEN}:
            return RefusedError(code, text, told, f"Log in again: {self._login}.")
        if code >= _SERVER:
            return ServerFailedError(code, text, told)
        return RefusedError(code, text, told)


class HttpService(ServiceClient):
    """The HTTP interface of one service; safe for several threads.

    Args:
        name: The service, in messages.
        address: Where it is, such as `http://head:8265`.
        headers: Gives the headers with credentials, anew for each request: tokens are renewed.
        login: Says where its credentials come from, for messages.
        ca_file: Certificates to trust; "" for those of the system.
        query: Gives the parameters with credentials, of a service that takes none in headers.
    """

    def __init__(
        self,
        name: str,
        address: str,
        headers: Callable[[], Mapping[str, str]],
        login: str,
        ca_file: str = "",
        query: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        super().__init__(name, address, login)
        self._headers = headers
        self._query = query
        self._ca_file = ca_file

    def json(self, request: Request) -> JsonValue:
        """Return the JSON that a request is answered with; errors as `call`."""
        data = self.call(request)
        try:
            return cast("JsonValue", json.loads(data)) if data else None
        except ValueError as error:
            raise BackendUnavailableError(
                f"{self._name} at {self.address} answers something else than JSON: {_shown(data)}",
                "", "Look at the address of the profile.",
            ) from error  # fmt: skip

    def find(self, request: Request) -> JsonObject | None:
        """Return the JSON that a request is answered with; None where there is no such thing. Errors as `call`."""
        found: JsonValue = None
        with unless_gone():
            found = self.json(request)
        return cast("JsonObject | None", found)

    def call(self, request: Request) -> bytes:
        """Return what a request is answered with.

        Raises:
            AnswerLostError: It may have come there, and its answer did not.
            BackendUnavailableError: The service cannot be reached, or does not want to be asked now.
            RefusedError: It says no.
        """
        self._keep_away()
        body = request.body
        headers = {**self._headers(), "Accept": "*/*", **request.headers}
        if body is not None:
            headers["Content-Type"] = request.content_type
        target = replace(request, query={**(request.query or {}), **self._query()}).target
        asked = urllib.request.Request(  # noqa: S310 - the address is the profile's
            f"{self.address}{target}", body, headers, method=request.method
        )
        try:
            with self._opener().open(asked, timeout=self.answer_s) as answer:
                return cast("bytes", answer.read(_MOST_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            text = error.read(_MOST_ANSWER_BYTES).decode(errors="replace")
            wait_s = _retry_after_s(error.headers.get("Retry-After"))
            raise self._refusal(f"{request.method} {request.path}", error.code, text, wait_s) from error
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error

    def _opener(self) -> urllib.request.OpenerDirector:
        if not self.address.startswith("https:"):
            return urllib.request.build_opener()
        trusted = ssl.create_default_context(cafile=self._ca_file or None)
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted))

    def _unreachable(self, reason: object) -> BackendUnavailableError:
        if isinstance(reason, ssl.SSLCertVerificationError):
            return BackendUnavailableError(
                f"The certificate of {self.address} is not trusted: {reason.verify_message}.", "",
                "Name the certificate of its authority: `ca_file:` in the profile.",
            )  # fmt: skip
        if isinstance(reason, (ConnectionRefusedError, socket.gaierror)):
            text = getattr(reason, "strerror", "") or str(reason)
            return BackendUnavailableError(
                f"{self._name} cannot be reached at {self.address}: {text}.", "", "Look at the address of the profile."
            )
        return self._lost(reason)


class ServerFailedError(AnswerLostError):
    """An error of a service that failed at a request, which may have been done."""

    def __init__(self, code: int, text: str, found: str) -> None:
        super().__init__(found, "", "It is tried again.")
        self.code = code
        self.text = text


def _retry_after_s(value: str | None) -> float:
    """Return the seconds that a `Retry-After` asks for: a number, or a date."""
    if value and value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value or "").timestamp() - time.time())
    except (TypeError, ValueError):
        return _WAIT_S


def _told(text: str) -> str:
    """Return the message of an answer that says no: of a JSON one where it has one, else its last line."""
    try:
        found = json.loads(text)
    except ValueError:
        return _last_line(text)
    found = found.get("error") or found if isinstance(found, dict) else found
    message = found.get("message") if isinstance(found, dict) else None
    return _last_line(str(message or text))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" .")]
    return lines[-1][:_MOST_SHOWN] if lines else "nothing more"


def _shown(data: bytes) -> str:
    return _last_line(data[:_MOST_SHOWN].decode(errors="replace"))


def as_text(requests: list[Request], address: str, headers: Iterable[str], parameters: Iterable[str] = ()) -> str:
    """Return requests as they are sent; bodies that are no text by their size.

    Args:
        requests: The requests.
        address: Of the service.
        headers: The names of those that hold credentials, which are masked.
        parameters: The names of such ones of the query.
    """
    parts = []
    for one in requests:
        masked = replace(one, query={**(one.query or {}), **dict.fromkeys(parameters, MASK)})
        lines = [f"{one.method} {address.rstrip('/')}{masked.target}"]
        lines += [f"{name}: {MASK}" for name in headers]
        if one.body is not None:
            lines += [f"Content-Type: {one.content_type}", "", _body(one.body)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _body(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=1, sort_keys=True)
    except ValueError:
        pass
    try:
        return body.decode()
    except UnicodeDecodeError:
        return f"({len(body)} bytes)"
