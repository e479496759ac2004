"""The handler of every operation over HTTP: who asks, may they, what is asked, then the operation in a thread."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, BinaryIO, Final

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import APIHandler
from pydantic import ValidationError
from tornado.iostream import StreamClosedError
from tornado.web import authenticated, stream_request_body

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint
from jupyter_autotrain.server.problems import CONTENT_TYPE, ProblemError, of_exception, problem, problem_json
from jupyter_autotrain.views.json_objects import strict

MOST_BODY_BYTES: Final = 64_000
_MOST_QUERY_BYTES: Final = 8_000
_BLOCK_BYTES: Final = 1 << 20
_NOT_OURS: Final = frozenset({"token", "_xsrf", "no_track_activity"})  # Jupyter's own; so are numbers against caches


@stream_request_body
class EndpointHandler(APIHandler):
    """The operations of one path, by method; none: the path is unknown."""

    _track_activity = False  # a page that only follows does not keep a server from being culled

    def initialize(self, server: ServerContext, endpoints: Mapping[str, Endpoint[Any]]) -> None:
        """Keep the objects that all requests share."""
        self._server = server
        self._endpoints = endpoints
        self._body = bytearray()

    def data_received(self, chunk: bytes) -> None:
        """Keep the body up to its limit; bytes beyond it only show that it is too long."""
        self._body += chunk[: MOST_BODY_BYTES + 1 - len(self._body)]

    @authenticated
    async def get(self, **in_path: str) -> None:
        """Answer an operation that reads."""
        await self._answer(in_path)

    @authenticated
    async def post(self, **in_path: str) -> None:
        """Answer an operation that does something."""
        await self._answer(in_path)

    @authenticated
    async def patch(self, **in_path: str) -> None:
        """Answer an operation that changes something."""
        await self._answer(in_path)

    @authenticated
    async def delete(self, **in_path: str) -> None:
        """Answer an operation that deletes something."""
        await self._answer(in_path)

    async def _answer(self, in_path: Mapping[str, str]) -> None:
        try:
            endpoint = self._endpoint()
            await self._authorize(endpoint)
            asked = endpoint.read(in_path, self._others(endpoint))
            threads = self._server.slow_threads if endpoint.is_slow else self._server.threads
            loop = asyncio.get_running_loop()
            answer, body = await loop.run_in_executor(threads, _run, self._server, endpoint, asked)
        except (ProblemError, ValidationError, AutotrainError) as error:
            self._refuse(of_exception(error, HTTPStatus.INTERNAL_SERVER_ERROR))
            return
        self.set_status(answer.status)
        self.set_header("Cache-Control", "no-store")
        for name, value in answer.headers.items():
            self.set_header(name, value)
        if answer.file is not None:
            self.set_header("Content-Type", answer.content_type)
            await self._send(answer.file)
        self.finish(body, set_content_type=answer.content_type)

    async def _send(self, file: BinaryIO) -> None:
        """Send the present content of a file, as it is read: it may be long, and grow faster than it is read."""
        loop = asyncio.get_running_loop()
        left_bytes = os.fstat(file.fileno()).st_size
        with file, suppress(StreamClosedError):  # whoever asked has left
            while block := await loop.run_in_executor(self._server.threads, file.read, min(left_bytes, _BLOCK_BYTES)):
                left_bytes -= len(block)
                self.write(block)
                await self.flush()

    def _endpoint(self) -> Endpoint[Any]:
        if not self._endpoints:
            raise problem(HTTPStatus.NOT_FOUND, "There is no such path.", "A path of openapi.json.", "Correct it.")
        found = self._endpoints.get(self.request.method or "")
        if found is None:
            methods = ", ".join(self._endpoints)
            self.set_header("Allow", methods)
            raise problem(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.request.method} is not supported here.", f"{methods}.")
        return found

    async def _authorize(self, endpoint: Endpoint[Any]) -> None:
        user = self.current_user
        allowed = await ensure_async(self.authorizer.is_authorized(self, user, endpoint.action, endpoint.resource))
        if not allowed:
            found = f"You may not {endpoint.action} {endpoint.resource}."
            raise problem(HTTPStatus.FORBIDDEN, found, "Leave of this server's authorizer.", "Ask who runs the server.")

    def _others(self, endpoint: Endpoint[Any]) -> Mapping[str, JsonValue]:
        """Return the members that the path does not hold: the query, or those of the body."""
        if len(self.request.query) > _MOST_QUERY_BYTES:
            found = f"The query has {len(self.request.query)} bytes."
            raise problem(HTTPStatus.BAD_REQUEST, found, f"At most {_MOST_QUERY_BYTES}.", "Ask for less.")
        query = self._query()
        if not endpoint.has_body:
            return query
        if query:
            raise problem(HTTPStatus.BAD_REQUEST, "There are parameters in the query.", "They belong into the body.")
        return self._members(endpoint)

    def _query(self) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        for name, values in self.request.query_arguments.items():
            if name in _NOT_OURS or name.isdigit():
                continue
            if len(values) > 1:
                raise problem(HTTPStatus.BAD_REQUEST, "A parameter is given twice.", "Each once.", "Correct the query.")
            try:
                found[name] = values[0].decode()
            except UnicodeDecodeError:
                raise problem(HTTPStatus.BAD_REQUEST, "The query is no text.", "UTF-8.", "Correct it.") from None
        return found

    def _members(self, endpoint: Endpoint[Any]) -> Mapping[str, JsonValue]:
        if len(self._body) > MOST_BODY_BYTES:
            found = "The body is too long."
            raise problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, found, f"At most {MOST_BODY_BYTES} bytes.", "Send less.")
        try:
            body = files.parse_json(bytes(self._body)) if self._body else {}
        except ValueError:  # also text that is no UTF-8
            raise problem(HTTPStatus.BAD_REQUEST, "The body is no JSON.", "A JSON object.", "Correct it.") from None
        if not isinstance(body, dict) or not body.keys().isdisjoint(endpoint.path_names):
            raise problem(HTTPStatus.BAD_REQUEST, "The body is not valid.", "A JSON object.", "Correct it.")
        return body

    def write_error(self, status_code: int, **kwargs: Any) -> None:  # noqa: ANN401 - tornado's signature
        """Write as a problem whatever fails before or beside an operation."""
        if self.request.method not in {"GET", "HEAD", "DELETE"}:
            self.set_header("Connection", "close")  # the rest of the body is not read
        error = kwargs.get("exc_info", (None, None, None))[1]
        self._refuse(of_exception(error, status_code))

    def _refuse(self, failure: ProblemError) -> None:
        self.set_status(failure.status)
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(problem_json(failure)), set_content_type=CONTENT_TYPE)


def _run(server: ServerContext, endpoint: Endpoint[Any], asked: Asked) -> tuple[Answer, bytes]:
    answer = endpoint.run(server, asked)
    if isinstance(answer.content, bytes):
        return answer, answer.content
    return answer, _strict_text(answer.content).encode()


def _strict_text(content: JsonValue) -> str:
    try:
        return json.dumps(content, allow_nan=False)
    except (TypeError, ValueError):  # a mapping that is no dict, or a number that is not finite: both are rare
        return json.dumps(strict(content), allow_nan=False)
