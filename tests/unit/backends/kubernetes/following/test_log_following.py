"""A log is read to its end: over connections that are cut or forgotten, and from nodes that do not answer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.pods import frames, places
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following import log_following
from jupyter_autotrain.backends.kubernetes.following.log_following import LogFollower
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import PodLife
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.errors import BackendUnavailableError

CUT = BackendUnavailableError("cut off")
LISTING = json.dumps({"sizes": {"stdout": 2}, "left": []}).encode() + b"\n"


def line(second: int, path: str, data: bytes) -> bytes:
    (text,) = frames.encode(path, 0, data)
    return f"2026-01-01T00:00:{second:02}Z {text}".encode()


FIRST = line(1, "stdout", b"a\n")
LAST = line(2, places.FILES, LISTING)


class Log:
    """A server of one log: each answer is its pieces; an error cuts it off, or refuses it where it comes first."""

    def __init__(self, *answers: list[bytes | Exception]) -> None:
        self.answers = list(answers)
        self.asked = 0

    @contextlib.asynccontextmanager
    async def opened(self, *_: Any, **__: Any) -> AsyncIterator[list[bytes | Exception]]:
        self.asked += 1
        yield self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def check(self, answer: list[bytes | Exception]) -> None:
        if answer and isinstance(answer[0], Exception) and answer[0] is not CUT:
            raise answer[0]

    @staticmethod
    async def pieces(answer: list[bytes | Exception]) -> AsyncIterator[bytes]:
        for piece in answer:
            if isinstance(piece, Exception):
                raise piece
            if piece == b"silence":
                await asyncio.Event().wait()
            yield piece


def follower_of(log: Log, folder: Path, life: Callable[[], PodLife] = lambda: PodLife.ENDED) -> LogFollower:
    at = PodAddress("lab", "pod", "trial", "python3")
    return LogFollower(cast("KubernetesApi", log), at, CollectedTrial(folder), life, lambda: None)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "_FIRST_PAUSE_S", 0.0)


def run(follower: LogFollower) -> None:
    asyncio.run(asyncio.wait_for(follower.run(), 60))


def test_an_answer_that_is_cut_off_at_the_end_of_a_line_is_not_the_end_of_the_log(tmp_path: Path) -> None:
    follower = follower_of(Log([FIRST, CUT], [FIRST, LAST]), tmp_path)
    run(follower)
    assert not follower.is_read_out
    assert follower.node is not None
    assert follower.node.has_ended()


def test_an_answer_that_a_server_ends_in_order_in_the_middle_is_read_again(tmp_path: Path) -> None:
    """As it does where its own connection to the node is cut."""
    follower = follower_of(Log([FIRST], [FIRST], [FIRST, LAST]), tmp_path)
    run(follower)
    assert not follower.is_read_out


def test_a_container_that_was_killed_is_read_out_when_nothing_more_comes(tmp_path: Path) -> None:
    log = Log([FIRST])
    follower = follower_of(log, tmp_path)
    run(follower)
    assert follower.is_read_out
    assert log.asked == 3


def test_a_connection_that_nothing_comes_over_is_given_up_once_the_container_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = [PodLife.ALIVE]
    log = Log([FIRST, b"silence"], [FIRST, LAST])
    follower = follower_of(log, tmp_path, lambda: life[0])

    async def main() -> None:
        following = asyncio.create_task(follower.run())
        while not (tmp_path / "0" / "trial" / "stdout").exists():
            await asyncio.sleep(0)
        monkeypatch.setattr(log_following, "_SILENT_S", -1.0)
        follower.end_if_silent()
        for _ in range(10):
            await asyncio.sleep(0)
        assert log.asked == 1  # it may only have nothing to say
        life[0] = PodLife.ENDED
        follower.end_if_silent()
        await asyncio.wait_for(following, 60)

    asyncio.run(main())
    assert log.asked == 2
    assert follower.is_done()


def unreachable(code: int = 502) -> Exception:
    error = BackendUnavailableError("dial tcp 10.0.0.7:10250: no route to host")
    error.__cause__ = ApiRefusedError(code, "", "no route to host")
    return error


def test_a_node_that_never_answers_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "LINGER_S", 0.0)
    follower = follower_of(Log([unreachable()]), tmp_path)
    run(follower)
    assert follower.is_read_out
    assert "no route to host" in follower.fault


def test_a_server_that_is_gone_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "LINGER_S", 0.0)
    gone: list[list[bytes | Exception]] = [[BackendUnavailableError("connection refused")] for _ in range(5)]
    follower = follower_of(Log(*gone, [FIRST, LAST]), tmp_path)
    run(follower)
    assert not follower.is_read_out
    assert follower.fault == ""


def test_what_cannot_be_written_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follower_of(Log([FIRST + LAST]), tmp_path)
    node = follower.node
    assert node is not None
    append = node.append
    told: list[str] = []

    def full_once(path: str, offset: int, data: bytes) -> None:
        if not told:
            told.append(path)
            raise OSError(errno.ENOSPC, "No space left on device")
        assert follower._last_time == ""
        append(path, offset, data)

    monkeypatch.setattr(node, "append", full_once)
    run(follower)
    assert node.has_ended()
    assert node.size("stdout") == 2
