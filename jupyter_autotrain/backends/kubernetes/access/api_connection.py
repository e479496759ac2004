"""Connections to the API server, which many requests share. All of it belongs to the loop, but for `namespace`.

What a request meets on its way is settled here: an expired login is renewed once, a server that asks to wait is waited
for.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.backends.kubernetes.access import api_errors, long_reads
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.event_loop import LoopThread
from jupyter_autotrain.backends.kubernetes.access.kubeconfig import Access
from jupyter_autotrain.backends.kubernetes.access.renewed_access import LoginRefusedError, RenewedAccess, said
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.errors import BackendUnavailableError

if TYPE_CHECKING:
    import aiohttp

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
            asks_to_wait = answer.status in _WAIT_CODES or (answer.status in _TROUBLE_CODES and method == "GET")
            if not asks_to_wait or not left:
                break
            await asyncio.sleep(_wait_s(answer.headers.get("Retry-After"), pause_s))
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)
        error = api_errors.of_answer(answer.status, content)
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", _AGAIN) from error
        raise error

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, query: Query | None = None, data: bytes | None = None,
        headers: Mapping[str, str] | None = None, read_s: float | None = _REQUEST_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:  # fmt: skip
        """An answer whose body is still to be read, by `content` or `pieces`; `read_s` bounds the pause in it.

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
        error = api_errors.of_answer(answer.status, await self.content(answer))
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", _AGAIN) from error
        raise error

    async def content(self, answer: aiohttp.ClientResponse) -> bytes:
        """The whole body of an answer.

        Raises:
            BackendUnavailableError: It is cut off.
        """
        return b"".join([data async for data in self.pieces(answer)])

    @staticmethod
    async def pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body of an answer as it comes.

        Raises:
            BackendUnavailableError: It is cut off.
        """
        import aiohttp  # noqa: PLC0415 - as above

        long_reads.prepare(answer)
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
        """A WebSocket, as `exec` wants it.

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
