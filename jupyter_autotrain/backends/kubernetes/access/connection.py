"""Connections to the API server, which many requests share. All of it belongs to the loop, but for `namespace`.

What a request meets on its way is settled here: an expired login is renewed once, a server that asks to wait is waited
for. A refusal is told in the server's words.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.credentials import Access, LoginRefusedError, RenewedAccess, said
from jupyter_autotrain.backends.kubernetes.access.event_loop import LoopThread
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

if TYPE_CHECKING:
    import aiohttp

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


def refusal_of_answer(code: int, body: bytes) -> ApiRefusedError:
    """Return the error of an answer."""
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


# Linux's names; others have some of them. A connection whose other side is gone is found dead after 90 s.
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


def prepare_long_read(answer: aiohttp.ClientResponse) -> None:
    """Have the connection of an answer cost little, and noticed when it is dead; as far as that can be had."""
    transport = answer.connection.transport if answer.connection is not None else None
    if transport is None:
        return
    with contextlib.suppress(OSError):  # the other side may have closed it, and the answer is here all the same
        _keep_alive(transport.get_extra_info("socket"))
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:  # the ticket that a server sends has OpenSSL hold 16 KiB until something is written
            tls.write(b"")


def _keep_alive(own: socket.socket | None) -> None:
    """Have the system ask the other side whether it is still there."""
    if own is None:
        return
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


_CONNECT_S = 10.0
_REQUEST_S = 60.0
_CLOSE_S = 0.1  # TLS connections say goodbye in later rounds of the loop
_HEARTBEAT_S = 120.0  # of a WebSocket; its answer may take half of that, as kubectl has it: a pod's input may be full
_TRIES = 6  # of a request that the server asks to send again
_MOST_PAUSE_S = 10.0
_UNAUTHORIZED = 401
_WAIT_CODES = frozenset({429, 503})
_TROUBLE_CODES = frozenset({500, 502, 504})
_AGAIN = "It is tried again."
Query = Mapping[str, str]


class ApiConnection:
    """Connections to a cluster.

    Args:
        load: Loads the access; called again when it is refused.
    """

    def __init__(self, load: Callable[[], Access]) -> None:
        self.loop = LoopThread("kubernetes")
        self._access = RenewedAccess(load)
        self._session: aiohttp.ClientSession | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the context.

        Raises:
            BackendError: There is no access.
        """
        access = self._access.loaded or self.loop.call(self._access.get())
        return access.namespace

    async def arequest(
        self, method: str, path: str, body: JsonValue = None, query: Query | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:  # fmt: skip
        """Send a request.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It does not answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        pause_s = 0.2
        for left in range(_TRIES - 1, -1, -1):
            async with self.opened(method, path, query, data, headers) as answer:
                content = await self.content(answer)
            if answer.status < 400:
                return cast("JsonObject", json.loads(content)) if content else {}  # 204
            if not _asks_to_wait(answer.status, method) or not left:
                break
            await asyncio.sleep(_wait_s(answer.headers.get("Retry-After"), pause_s))
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)
        error = refusal_of_answer(answer.status, content)
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", _AGAIN) from error
        raise error

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, query: Query | None = None, data: bytes | None = None,
        headers: Mapping[str, str] | None = None, read_s: float | None = _REQUEST_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:  # fmt: skip
        """Give an answer whose body is still to be read, by `content` or `pieces`; `read_s` bounds the pause in it.

        Raises:
            BackendUnavailableError: There is no answer.
        """
        await self._access.get()  # says what to install where there is no aiohttp
        import aiohttp  # noqa: PLC0415 - takes 15 MB, which only a manager with a cluster pays

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=read_s)

        async def send(access: Access, *, is_last: bool) -> aiohttp.ClientResponse:
            answer = await self._open_session().request(
                method, f"{access.host}{path}", params=query, data=data, timeout=timeout,
                headers={**_authorization(access), **(headers or {})}, ssl=_tls(access),
                server_hostname=access.server_name or None, proxy=access.proxy or None,
            )  # fmt: skip
            if answer.status == _UNAUTHORIZED and not is_last:
                answer.release()
                raise LoginRefusedError
            return answer

        async with await self._access.sent(send) as answer:
            yield answer

    async def check(self, answer: aiohttp.ClientResponse) -> None:
        """Make sure that an answer is what was asked for.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It cannot answer now.
        """
        if answer.status < 400:
            return
        error = refusal_of_answer(answer.status, await self.content(answer))
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", _AGAIN) from error
        raise error

    async def content(self, answer: aiohttp.ClientResponse) -> bytes:
        """Return the whole body of an answer.

        Raises:
            BackendUnavailableError: It is cut off.
        """
        return b"".join([data async for data in self.pieces(answer)])

    @staticmethod
    async def pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the body of an answer as it comes.

        Raises:
            BackendUnavailableError: It is cut off.
        """
        import aiohttp  # noqa: PLC0415 - as above

        prepare_long_read(answer)
        try:
            async for data in answer.content.iter_any():
                yield data
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            told = f"The answer of {answer.url.host} was cut off: {said(error)}."
            raise BackendUnavailableError(told, "", _AGAIN) from error

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Sequence[tuple[str, str]]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Give a WebSocket, as `exec` wants it.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It does not answer.
        """
        await self._access.get()
        import aiohttp  # noqa: PLC0415 - as above

        async def send(access: Access, *, is_last: bool) -> aiohttp.ClientWebSocketResponse:
            try:
                return await self._open_session().ws_connect(
                    f"{access.host}{path}", params=query, headers=_authorization(access), ssl=_tls(access),
                    protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"), proxy=access.proxy or None,
                    server_hostname=access.server_name or None, max_msg_size=0, heartbeat=_HEARTBEAT_S,
                )  # fmt: skip
            except aiohttp.WSServerHandshakeError as error:
                if error.status == _UNAUTHORIZED and not is_last:
                    raise LoginRefusedError from error
                told = f"a command cannot be run in the pod: {error.message}"
                raise ApiRefusedError(error.status, "", told) from error

        async with await self._access.sent(send) as socket:
            try:
                yield socket
            except (aiohttp.ClientError, ConnectionError) as error:
                raise BackendUnavailableError(f"The WebSocket was cut off: {said(error)}.", "", _AGAIN) from error

    def _open_session(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415 - as above

        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 14)
        return self._session

    def close(self) -> None:
        """Close all connections."""
        self.loop.stop(self._close_session)

    async def _close_session(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(_CLOSE_S)
        self._session = None
        self._access.end()


def _authorization(access: Access) -> dict[str, str]:
    return {"Authorization": access.authorization} if access.authorization else {}


def _tls(access: Access) -> ssl.SSLContext | bool:
    return access.tls if access.tls is not None else True


def _wait_s(header: str | None, pause_s: float) -> float:
    return min(float(header), _MOST_PAUSE_S) if header and header.isdigit() else pause_s


def _asks_to_wait(status: int, method: str) -> bool:
    return status in _WAIT_CODES or (status in _TROUBLE_CODES and method == "GET")
