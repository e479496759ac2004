"""Tests of what goes wrong while a folder is sent to a volume over `exec`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_autotrain.backends.kubernetes.access.event_loop import LoopThread
from jupyter_autotrain.backends.kubernetes.access.exec_command import ExecChannel, PodAddress
from jupyter_autotrain.backends.transfer.channels import NoAnswerError
from jupyter_autotrain.backends.transfer.folders import scan_folder
from jupyter_autotrain.backends.transfer.sending import Receiver, send_folder
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

AT = PodAddress("lab", "loader", "main", "python3")
NAME = "the volume of `storage:`"
FAILURE = b'\x03{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "1"}]}}'


class EndedProgram:
    """The WebSocket of a program that has said something and takes nothing more."""

    protocol = "v4.channel.k8s.io"

    def __init__(self, *messages: bytes) -> None:
        self.messages = iter(messages)

    async def __aenter__(self) -> EndedProgram:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __aiter__(self) -> EndedProgram:
        return self

    async def __anext__(self) -> SimpleNamespace:
        for message in self.messages:
            return SimpleNamespace(data=message)
        raise StopAsyncIteration

    async def send_bytes(self, _data: bytes) -> None:
        raise ConnectionResetError("Cannot write to closing transport")


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    made = LoopThread("exec")
    yield made

    async def nothing() -> None:
        pass

    made.stop(nothing)


def channel(loop: LoopThread, *messages: bytes) -> ExecChannel:
    api = SimpleNamespace(loop=loop, websocket=lambda _path, _query: EndedProgram(*messages))
    return ExecChannel(api, AT, ["python3"], NAME)  # type: ignore[arg-type]  # all that is used of it


def send(loop: LoopThread, folder: Path, *messages: bytes) -> None:
    receiver = Receiver(lambda _argv: channel(loop, *messages), "python3", NAME)
    send_folder(receiver, scan_folder(folder), "/storage/data", "archives/0")


def test_a_full_volume_is_told_as_one(loop: LoopThread, tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(bytes(1 << 10))
    said = b'\x01{"error": "[Errno 28] No space left on device", "kind": "full"}\n'
    with pytest.raises(BackendUnavailableError, match="No space left on device") as caught:
        send(loop, tmp_path, said, FAILURE)
    assert "the volume of `storage:` cannot take the files" in caught.value.found
    assert "Free some room" in caught.value.action


def test_a_program_that_cannot_run_there_is_told_with_its_last_words(loop: LoopThread, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="No module named 'tarfile'"):
        send(loop, tmp_path, b"\x02ModuleNotFoundError: No module named 'tarfile'\n", FAILURE)


def test_the_exit_code_of_a_program_is_known_at_its_end(loop: LoopThread) -> None:
    made = channel(loop, b"\x01", b"\x02", b"\x01one\n", b"\x02words", FAILURE)  # as servers begin
    assert (made.receive(), made.receive()) == (b"one\n", b"")
    assert (made.exit_code(), made.stderr()) == (1, b"words")
    made.close()


def test_a_program_that_says_nothing_is_given_up(loop: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(_socket: EndedProgram) -> None:
        await asyncio.sleep(600)

    monkeypatch.setattr(EndedProgram, "__anext__", never)
    with pytest.raises(NoAnswerError, match="has not answered"):
        channel(loop).receive(0.01)
