"""What goes wrong while an archive is written to a volume."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_autotrain.backends.kubernetes.storage import loader_pod, tar_stream
from jupyter_autotrain.errors import BackendError


class FullVolume:
    """The WebSocket of a pod whose volume is full: it ends while it is written to, and has said why."""

    def __init__(self) -> None:
        status = b'\x03{"status": "Failure"}'
        words = b"\x02OSError: [Errno 28] No space left on device\n"
        self.messages = iter([b"\x01ready\n", words, status])

    async def __aenter__(self) -> FullVolume:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __aiter__(self) -> FullVolume:
        return self

    async def __anext__(self) -> SimpleNamespace:
        for message in self.messages:
            return SimpleNamespace(data=message)
        raise StopAsyncIteration

    async def send_bytes(self, _data: bytes) -> None:
        raise ConnectionResetError("Cannot write to closing transport")


def test_a_full_volume_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(bytes(1 << 10))
    stream = tar_stream.of_folder(tmp_path)
    with pytest.raises(BackendError, match=r"did not take it: OSError: .* No space left on device"):
        asyncio.run(loader_pod._exchange(FullVolume(), stream))
