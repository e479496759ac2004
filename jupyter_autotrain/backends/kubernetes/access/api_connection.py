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

from jupyter_autotrain.backends.kubernetes.access import api_errors
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.event_loop import LoopThread
from jupyter_autotrain.backends.kubernetes.access.kubeconfig import Access
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, MissingExtraError

if TYPE_CHECKING:
    import aiohttp

_CONNECT_S = 10.0
_REQUEST_S = 60.0
_CLOSE_S = 0.1  # TLS connections say goodbye in later rounds of the loop
_TRIES = 6  # of a request that the server asks to send again
_MOST_PAUSE_S = 10.0
_UNAUTHORIZED = 401
_WAIT_CODES = frozenset({429, 503})
_TROUBLE_CODES = frozenset({500, 502, 504})
Query = Mapping[str, str]


class ApiConnection:
    """Connections to a cluster.

    Args:
        load: Loads the access; called again when it is refused.
    """

    def __init__(self, load: Callable[[], Access]) -> None:
        self.loop = LoopThread("kubernetes")
        self._load = load
        self._access: Access | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loading: asyncio.Lock | None = None
        self.requests = 0

    @property
    def namespace(self) -> str:
        """The namespace of the context.

        Raises:
            BackendError: There is no access.
        """
        access = self._access
        return access.namespace if access is not None else self.loop.call(self._connected()).namespace

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
                content = await answer.read()
            if answer.status < 400:
                return cast("JsonObject", json.loads(content))
            asks_to_wait = answer.status in _WAIT_CODES or (answer.status in _TROUBLE_CODES and method == "GET")
            if not asks_to_wait or not left:
                break
            await asyncio.sleep(_wait_s(answer.headers.get("Retry-After"), pause_s))
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)
        error = api_errors.of_answer(answer.status, content)
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", "It is tried again.") from error
        raise error

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, query: Query | None = None, data: bytes | None = None,
        headers: Mapping[str, str] | None = None, read_s: float | None = _REQUEST_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:  # fmt: skip
        """An answer whose body is still to be read; `read_s` bounds the pause between its parts.

        Raises:
            BackendUnavailableError: There is no answer.
        """
        await self._connected()  # says what to install where there is no aiohttp
        import aiohttp  # noqa: PLC0415 - takes 15 MB, which only a manager with a cluster pays

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=read_s)
        for is_last in (False, True):
            access = await self._connected()
            self.requests += 1
            try:
                async with await self._open_session().request(
                    method, f"{access.host}{path}", params=query, data=data, timeout=timeout,
                    headers={**_authorization(access), **(headers or {})}, ssl=_tls(access),
                    server_hostname=access.server_name or None, proxy=access.proxy or None,
                ) as answer:  # fmt: skip
                    if answer.status == _UNAUTHORIZED and not is_last:
                        await self._renew(access)
                        continue
                    yield answer
                    return
            except aiohttp.ClientSSLError as error:
                if is_last:
                    raise _unavailable(access, error) from error
                await self._renew(access)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _unavailable(access, error) from error

    async def check(self, answer: aiohttp.ClientResponse) -> None:
        """Make sure that an answer is what was asked for.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It cannot answer now.
        """
        if answer.status < 400:
            return
        error = api_errors.of_answer(answer.status, await answer.read())
        if answer.status in _WAIT_CODES | _TROUBLE_CODES:
            raise BackendUnavailableError(error.found, "", "It is tried again.") from error
        raise error

    @staticmethod
    async def pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body of an answer as it comes; one that is cut off just ends."""
        import aiohttp  # noqa: PLC0415 - as above

        try:
            _free_write_buffer(answer)
            async for data in answer.content.iter_any():
                yield data
        except (aiohttp.ClientError, TimeoutError, OSError):
            return

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Sequence[tuple[str, str]]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket, as `exec` wants it.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It does not answer.
        """
        access = await self._connected()
        import aiohttp  # noqa: PLC0415 - as above

        self.requests += 1
        try:
            async with self._open_session().ws_connect(
                f"{access.host}{path}", params=query, headers=_authorization(access), ssl=_tls(access), max_msg_size=0,
                protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"), proxy=access.proxy or None,
                server_hostname=access.server_name or None,
            ) as socket:  # fmt: skip
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            if error.status == _UNAUTHORIZED:
                await self._renew(access)
            raise ApiRefusedError(error.status, "", f"a command cannot be run in the pod: {error.message}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unavailable(access, error) from error

    def _open_session(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415 - as above

        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 14)
        return self._session

    async def _connected(self) -> Access:
        if self._access is None:
            await self._renew(None)
        assert self._access is not None
        return self._access

    async def _renew(self, refused: Access | None) -> None:
        """Load the access, unless somebody has since it was refused."""
        if self._loading is None:
            self._loading = asyncio.Lock()
        async with self._loading:
            if self._access is not refused:
                return
            try:
                import aiohttp  # noqa: F401, PLC0415 - asked for before anything else needs it
            except ImportError as error:
                raise MissingExtraError("aiohttp", "kubernetes", "Trials on Kubernetes") from error
            self._access = await asyncio.get_running_loop().run_in_executor(None, self._load)

    def close(self) -> None:
        """Close all connections."""
        self.loop.stop(self._close_session)

    async def _close_session(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(_CLOSE_S)
        self._session = None
        self._loading = None


def _free_write_buffer(answer: aiohttp.ClientResponse) -> None:
    """The ticket that a server sends has OpenSSL hold 16 KiB until something is written: a follow writes nothing."""
    transport = answer.connection.transport if answer.connection is not None else None
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is not None:
        tls.write(b"")


def _authorization(access: Access) -> dict[str, str]:
    return {"Authorization": access.authorization} if access.authorization else {}


def _tls(access: Access) -> ssl.SSLContext | bool:
    return access.tls if access.tls is not None else True


def _wait_s(header: str | None, pause_s: float) -> float:
    return min(float(header), _MOST_PAUSE_S) if header and header.isdigit() else pause_s


def _unavailable(access: Access, error: Exception) -> BackendError:
    said = str(error) or type(error).__name__
    return BackendUnavailableError(f"The API server {access.host} does not answer: {said}.", "", "It is tried again.")
