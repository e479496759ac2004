"""Common part of all requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tornado import iostream, web

from tests.labs.kubernetes.objects import patches
from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.server.access import Access, User
from tests.labs.kubernetes.server.faults import Faults
from tests.labs.kubernetes.server.runtime import ContainerRuntime
from tests.labs.kubernetes.server.watch import Wakeups
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.decoding import Decoder

BODY_LIMIT = 3 * 1024 * 1024
PATCH_TYPES = {
    "application/merge-patch+json": patches.MERGE_PATCH,
    "application/strategic-merge-patch+json": patches.STRATEGIC_PATCH,
}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass
class Server:
    """State that all requests share."""

    store: ObjectStore
    access: Access
    faults: Faults
    runtime: ContainerRuntime | None
    decoder: Decoder
    bookmark_interval_s: float
    wakeups: Wakeups | None = None
    processes: dict[asyncio.Task[None], Callable[[], None]] = field(default_factory=dict)
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)


class ApiHandler(web.RequestHandler):
    """Beginning and end of each request."""

    def initialize(self, server: Server) -> None:
        """Tornado's way to pass arguments."""
        self.server = server
        self.user = User("system:anonymous", ())
        self._streaming: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Authenticate, and refuse what a test wants refused."""
        if len(self.request.body) > BODY_LIMIT:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")
        self.server.faults.check(self.verb(), self.request.path)
        self.user = self.server.access.user(self.request.headers.get("Authorization", ""))

    def verb(self) -> str:
        """As permissions name what is done."""
        return _VERBS.get(str(self.request.method), "get")

    def send(self, found: Any, code: int = 200) -> None:
        """Answer with a JSON value."""
        self.set_status(code)
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-cache, private")
        self.finish(json.dumps(found, separators=(",", ":")))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with a Status."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if not isinstance(error, ApiError):
            error = ApiError(status_code, "InternalError", f"Internal error occurred: {error}")
        for name, value in error.headers.items():
            self.set_header(name, value)
        self.send(error.status(), error.code)

    def log_exception(self, *_: Any) -> None:
        """Write nothing: the client is told."""

    async def stream(self, chunks: AsyncGenerator[bytes, None]) -> None:
        """Answer with what comes, until it ends or the client goes."""
        self._streaming = asyncio.current_task()
        with contextlib.suppress(iostream.StreamClosedError, asyncio.CancelledError):
            async with contextlib.aclosing(chunks):
                await self.flush()
                async for chunk in chunks:
                    self.write(chunk)
                    await self.flush()
        self._streaming = None

    def on_connection_close(self) -> None:
        """Read nothing more for a client that has gone."""
        if self._streaming is not None:
            self._streaming.cancel()

    def warn(self, warnings: Sequence[str]) -> None:
        """Tell the client what is wrong, but not refused."""
        for text in warnings:
            escaped = text.replace('"', '\\"')
            self.add_header("Warning", f'299 - "{escaped}"')

    def option(self, name: str) -> str:
        """Return a parameter of the query, "" if it is not there."""
        return self.get_query_argument(name, "") or ""

    def number(self, name: str) -> int | None:
        """Return a parameter that is a number, None if it is not there.

        Raises:
            ApiError: 400: It is none.
        """
        text = self.option(name)
        if not text:
            return None
        if not text.lstrip("-").isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false."""
        return self.option(name) in ("true", "1", "True")

    def body(self) -> Any:
        """Return what the request sends.

        Raises:
            ApiError: 400 or 415.
        """
        kind = self.request.headers.get("Content-Type", "application/json").split(";")[0].strip()
        try:
            if kind == "application/json" or kind in PATCH_TYPES:
                return json.loads(self.request.body)
        except ValueError as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
        message = "the body of the request was in an unknown format - accepted media types include: application/json"
        raise ApiError(415, "UnsupportedMediaType", message)
