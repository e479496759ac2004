"""Tests of what may happen to connections to an API server."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.credentials import Access
from jupyter_autotrain.errors import BackendUnavailableError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def cut_off(request: web.Request) -> web.StreamResponse:
    """Return an answer that ends after a line, without the end of its encoding."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b"a line\n")
    assert request.transport is not None
    request.transport.close()
    return answer


async def whole(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"items": []})


async def echo(request: web.Request) -> web.StreamResponse:
    """Return a WebSocket for those who have the new login."""
    if request.headers.get("Authorization") != "Bearer new":
        return web.Response(status=401)
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    await answer.send_str("here")
    await answer.close()
    return answer


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[KubernetesApi]:
    """Access to a server with one handler; its first login is old."""
    app = web.Application()
    app.router.add_get("/path", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    logins = iter(["Bearer old", "Bearer new"])
    api = KubernetesApi(lambda: Access(host, "default", authorization=next(logins)))
    try:
        yield api
    finally:
        await api._close_session()
        await runner.cleanup()


def test_an_answer_that_is_cut_off_is_told_from_one_that_ends() -> None:
    came: list[bytes] = []

    async def main() -> None:
        async with serving(cut_off) as api, api.opened("GET", "/path") as answer:
            came.append(await anext(pieces := api.pieces(answer)))
            await anext(pieces)

    with pytest.raises(BackendUnavailableError, match="was cut off"):
        asyncio.run(main())
    assert came == [b"a line\n"]


def test_a_request_whose_answer_is_cut_off_has_none() -> None:
    async def main() -> None:
        async with serving(cut_off) as api:
            await api.arequest("GET", "/path")

    with pytest.raises(BackendUnavailableError, match="was cut off"):
        asyncio.run(main())


def test_a_full_disk_is_not_told_as_a_server_that_does_not_answer() -> None:
    async def main() -> None:
        async with serving(whole) as api, api.opened("GET", "/path"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(main())


def test_a_websocket_whose_login_has_expired_is_opened_with_the_new_one() -> None:
    async def main() -> str:
        async with serving(echo) as api, api.websocket("/path", ()) as connected:
            return str((await connected.receive()).data)

    assert asyncio.run(main()) == "here"


def test_the_system_asks_whether_the_other_side_of_a_long_answer_is_still_there() -> None:
    async def main() -> int:
        gate = asyncio.Event()

        async def held(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"a line\n")
            await gate.wait()
            return answer

        async with serving(held) as api, api.opened("GET", "/path") as answer:
            assert await anext(api.pieces(answer)) == b"a line\n"
            assert answer.connection is not None
            assert answer.connection.transport is not None
            own: socket.socket = answer.connection.transport.get_extra_info("socket")
            gate.set()
            return own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    assert asyncio.run(main())
