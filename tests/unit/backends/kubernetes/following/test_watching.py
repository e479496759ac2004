"""Lists come in pages, and one object that cannot be dealt with does not hide the others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.credentials import Access
from jupyter_autotrain.backends.kubernetes.following import watching
from jupyter_autotrain.backends.kubernetes.following.watching import WatchedObjects
from jupyter_autotrain.backends.kubernetes.objects.workload import PODS
from jupyter_autotrain.errors import BackendUnavailableError


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "labels": {}}}


class Server(KubernetesApi):
    """Five pods in pages of two, and watches that tell what they are given."""

    def __init__(self, expires_after: int | None = None) -> None:
        super().__init__(lambda: Access("http://nowhere", "default"))
        self.asked: list[dict[str, str]] = []
        self.expires_after = expires_after
        self.watches: list[list[dict[str, Any]]] = []

    async def arequest(self, method: str, path: str, body: Any = None, query: Any = None, *_: Any) -> Any:  # type: ignore[override] # short
        self.asked.append(dict(query))
        begin = int(query.get("continue", 0))
        if begin == self.expires_after and "limit" in query:
            raise ApiRefusedError(410, "Expired", "The provided continue parameter is too old")
        end = begin + 2 if "limit" in query else 5
        token = {"continue": str(end)} if end < 5 else {}
        items = [pod(f"p{index}") for index in range(begin, min(end, 5))]
        return {"items": items, "metadata": {"resourceVersion": "7", **token}}

    @contextlib.asynccontextmanager
    async def opened(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # type: ignore[override] # short
        yield self.watches.pop(0) if self.watches else []

    async def check(self, answer: Any) -> None:
        pass

    @staticmethod
    async def pieces(answer: Any) -> AsyncIterator[bytes]:
        for event in answer:
            yield json.dumps(event).encode() + b"\n"
        if not answer:
            await asyncio.sleep(3600)


def names(found: list[Any]) -> list[str]:
    return [one["metadata"]["name"] for one in found]


def test_a_long_list_comes_in_pages() -> None:
    server = Server()
    found, version = asyncio.run(server.alist("/pods", {"labelSelector": "a=b"}))
    assert names(found) == ["p0", "p1", "p2", "p3", "p4"]
    assert version == "7"
    assert [query.get("continue") for query in server.asked] == [None, "2", "4"]
    assert {query["labelSelector"] for query in server.asked} == {"a=b"}


@pytest.mark.parametrize("expires_after", [0, 2, 4])
def test_pages_that_expire_in_the_middle_are_listed_at_once(expires_after: int) -> None:
    server = Server(expires_after)
    found, _ = asyncio.run(server.alist("/pods", {}))
    assert names(found) == ["p0", "p1", "p2", "p3", "p4"]
    assert "limit" not in server.asked[-1]


def run_until(server: Server, on_change: Callable[[Any, bool], None], condition: Callable[[], bool]) -> WatchedObjects:
    watched = WatchedObjects(server, PODS, "default", "", on_change, lambda one: one)

    async def main() -> None:
        task = asyncio.create_task(watched.run())
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    return watched


def test_a_fault_of_a_callback_does_not_end_the_watch() -> None:
    server = Server()
    server.watches = [[{"type": "MODIFIED", "object": pod("p1")}, {"type": "ADDED", "object": pod("p9")}]]
    told: list[str] = []

    def on_change(one: Any, is_gone: bool) -> None:
        told.append(one["metadata"]["name"])
        if one["metadata"]["name"] == "p1":
            raise KeyError("not as it was expected")

    watched = run_until(server, on_change, lambda: "p9" in told)
    assert told == ["p0", "p1", "p2", "p3", "p4", "p1", "p9"]
    assert names(watched.all()) == ["p0", "p1", "p2", "p3", "p4", "p9"]


def test_an_event_that_cannot_be_read_begins_the_watch_again() -> None:
    server = Server()
    server.watches = [[{"type": "ADDED", "object": {"metadata": "nonsense"}}], [{"type": "ADDED", "object": pod("p9")}]]
    told: list[str] = []
    run_until(server, lambda one, _: told.append(one["metadata"]["name"]), lambda: "p9" in told)
    assert told.count("p0") == 2  # listed anew


class GoneServer(Server):
    """Does not answer."""

    async def arequest(self, *_: Any, **__: Any) -> Any:
        raise BackendUnavailableError("The API server does not answer: connection refused.")


def test_what_cannot_be_listed_is_not_waited_for() -> None:
    server = GoneServer()
    watched = WatchedObjects(server, PODS, "default", "", lambda *_: None, lambda one: one)
    running = server.loop.start(watched.run())
    begun_s = time.monotonic()
    for _ in range(30):
        assert not watched.wait_until_listed(15.0)
    assert time.monotonic() - begun_s < 120.0  # 30 waits would take 450
    assert "connection refused" in watched.fault
    running.cancel()
    server.close()


def test_watches_that_end_at_once_are_not_begun_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a proxy that ends what it does not know."""
    pauses: list[float] = []

    async def wait(pause_s: float) -> float:
        pauses.append(pause_s)
        await asyncio.sleep(0)
        return pause_s * 2

    class Proxy(Server):
        @staticmethod
        async def pieces(answer: Any) -> AsyncIterator[bytes]:
            for event in answer:
                yield event

    monkeypatch.setattr(watching, "_wait", wait)
    run_until(Proxy(), lambda *_: None, lambda: len(pauses) >= 3)
    assert pauses[:3] == [0.2, 0.4, 0.8]
