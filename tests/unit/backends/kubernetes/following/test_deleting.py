"""Requests that many trials share: how long they wait for each other, and what is sent before what."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.deleting import BatchWindow, ObjectDeleter
from jupyter_autotrain.backends.kubernetes.objects.workload import JOBS


def test_batches_that_follow_each_other_closely_take_more_in_and_a_pause_ends_that():
    now = SimpleNamespace(s=100.0)
    window = BatchWindow(0.5, 4.0, lambda: now.s)
    opened = []
    for _ in range(5):
        opened.append(window.open())
        now.s += opened[-1] + 0.3
    assert opened == [0.5, 1.0, 2.0, 4.0, 4.0]
    now.s += 10.0
    assert window.open() == 0.5


def test_code_gets_its_owners_before_any_of_them_is_deleted():
    sent: list[str] = []

    async def arequest(verb: str, path: str, *_: Any) -> None:
        sent.append(f"{verb} {path.rpartition('/')[2]}")

    async def own_code() -> None:
        sent.append("own")

    async def delete() -> None:
        deleter = ObjectDeleter(cast("KubernetesApi", SimpleNamespace(arequest=arequest)), "default", "home", own_code)
        for number in range(3):
            deleter.delete_soon(JOBS, f"e-{number}-1")
        deleter.delete_at_once()
        await deleter.until_deleted()

    asyncio.run(delete())
    assert sent == ["own", "DELETE jobs"]
