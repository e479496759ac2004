"""Files on their way to a host, as one tar stream; the other end is `received_files`."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.backends.ssh.transport import Channel

_PIECE_BYTES = 1 << 18

ProgressCallback = Callable[[int, int], None]  # bytes sent, bytes to send


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a folder: its path in it, size, digest, where it lies here, and whether it may be executed."""

    path: str
    size_bytes: int
    sha256: str
    source: Path
    is_executable: bool


class ArchiveStream:
    """Sends files as a tar stream, in large pieces; tells of the progress.

    Args:
        channel: Takes the stream.
        progress: Called after each piece.
        silence_s: How long the other end may take nothing: it first reads what is there of a file.
    """

    def __init__(self, channel: Channel, progress: ProgressCallback | None, silence_s: float) -> None:
        self._channel = channel
        self._progress = progress
        self._silence_s = silence_s
        self._total_bytes = 0
        self._sent_bytes = 0
        self._piece = bytearray()

    def send(self, sources: Mapping[str, SentFile], needed: Mapping[str, int]) -> None:
        """Send the needed files from their offsets on, each content once.

        Args:
            sources: Files, by digest.
            needed: The digests of those to send, and how much of each is there.

        Raises:
            LinkLostError: The connection is gone.
            OSError: A file here cannot be read, or has become shorter.
        """
        self._total_bytes = sum(sources[sha256].size_bytes - offset for sha256, offset in needed.items())
        try:
            for sha256, offset in needed.items():
                self._send_file(sources[sha256], offset)
            self._write(bytes(2 * tarfile.BLOCKSIZE))
            self._flush()
        except BrokenPipeError:
            return  # the other end has said why

    def _send_file(self, file: SentFile, offset: int) -> None:
        member = tarfile.TarInfo(f"{file.sha256}@{offset}")
        member.size = file.size_bytes - offset
        self._write(member.tobuf(tarfile.GNU_FORMAT))
        with file.source.open("rb", buffering=0) as source:
            source.seek(offset)
            left = member.size
            while left:
                block = source.read(min(left, _PIECE_BYTES))
                if not block:
                    raise OSError(f"{file.source} has become shorter while it was sent")
                self._write(block)
                left -= len(block)
        self._write(bytes(-member.size % tarfile.BLOCKSIZE))

    def _write(self, data: bytes) -> None:
        self._piece += data
        if len(self._piece) >= _PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._channel.send(bytes(self._piece), self._silence_s)
        self._sent_bytes += len(self._piece)
        self._piece.clear()
        if self._progress is not None:
            self._progress(min(self._sent_bytes, self._total_bytes), self._total_bytes)
