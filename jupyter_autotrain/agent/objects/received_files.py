"""The files that were received on a host, each kept by its digest. This code is sent there as text.

A file is kept before its folder is complete, so a second attempt, and the next folder that holds the same file, need
not send it again. Of a file that was cut the beginning is kept, in a part. Needs only the standard library of
Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import sys
import tarfile
from pathlib import Path
from typing import IO

SILENCE_S = 60
_BLOCK_BYTES = 1 << 20
_PART = ".part-"
# Of file systems without hard links, such as those that some volumes of a cluster have.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK)


class DamagedFileError(ValueError):
    """An error of a kept file that has been changed since; it is gone now, and sent again the next time."""


class ReceivedFiles:
    """The files in one folder; several receivers may use it at the same time.

    Args:
        folder: The folder.
        sizes: The files that are wanted: their sizes, by digest.
    """

    def __init__(self, folder: Path, sizes: dict[str, int]) -> None:
        self._folder = folder
        self._sizes = sizes
        self._buffer = memoryview(bytearray(_BLOCK_BYTES))
        self._others: dict[str, list[Path]] = {}  # by digest: the parts that other receivers write, or have left
        self._own: dict[str, IO[bytes]] = {}  # by digest: our parts, locked
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"  # hosts that share a home may use a pid at the same time
        self._new: set[str] = set()  # received here, checked, and in no folder yet

    def needed(self) -> dict[str, int]:
        """Return the size of our part of each wanted file that is not there: its first bytes, not sent again."""
        names = {path.name for path in self._folder.iterdir()}
        for name in names:
            sha256, part, _ = name.partition(_PART)
            if part:
                self._others.setdefault(sha256, []).append(self._folder / name)
        return {sha256: self._take_part(sha256) for sha256 in self._sizes if sha256 not in names}

    def _take_part(self, sha256: str) -> int:
        """Take over the longest part that another receiver has left; copy it where that one still writes to it."""
        longest = max(self._others.get(sha256, []), key=_size, default=None)
        if longest is None or _size(longest) == 0:
            return 0
        with contextlib.suppress(FileNotFoundError):  # its receiver has just completed it
            part = self._own[sha256] = _take_over(longest, self._own_part(sha256))
            size = os.fstat(part.fileno()).st_size
            return size if size < self._sizes[sha256] else 0
        return 0

    def _own_part(self, sha256: str) -> Path:
        return self._folder / f"{sha256}{_PART}{self._name}"

    def unpack(self) -> None:
        """Take in the files that come as an archive, and check each.

        The blocks of the archive are read here: `tarfile` passes on a few kilobytes at a time, at half the speed.

        Raises:
            ValueError: The archive ends early, or is not what was asked for.
        """
        while member := _next_member():
            sha256, _, offset = member.name.partition("@")
            if sha256 not in self._sizes:
                raise ValueError(f"{member.name} was not asked for")
            self._receive(sha256, member.size, int(offset))
            _exactly(-member.size % tarfile.BLOCKSIZE)

    def _receive(self, sha256: str, size: int, offset: int) -> None:
        """Receive one file.

        Its part stays locked until it has its name, so that nobody takes it for one that was left.
        """
        with self._own.pop(sha256, None) or _open_part(self._own_part(sha256)) as part:
            self._accept(sha256, self._write_part(part, size, offset))

    def _write_part(self, part: IO[bytes], size: int, offset: int) -> str:
        """Write `size` bytes of the input to a part, from an offset on; return the digest of the whole part."""
        total = hashlib.sha256()
        part.truncate(offset)
        part.seek(0)
        for block in iter(lambda: part.read(_BLOCK_BYTES), b""):
            total.update(block)
        while size:
            signal.alarm(SILENCE_S)
            count = sys.stdin.buffer.readinto1(self._buffer[:size])  # type: ignore[union-attr]  # it is buffered
            if not count:
                raise ValueError("the files ended early")
            _write(part, self._buffer[:count])
            total.update(self._buffer[:count])
            size -= count
        signal.alarm(0)
        return total.hexdigest()

    def _accept(self, sha256: str, found: str) -> None:
        """Give a part its name if its content has the digest; all other parts of it are of no use any more."""
        own = self._own_part(sha256)
        kept = self._folder / sha256
        if found != sha256:
            own.unlink()
            raise ValueError(f"a file was damaged on its way: {found} came for {sha256}")
        try:
            _link(own, kept)
            self._new.add(sha256)
        except OSError:
            if not kept.exists():  # else another receiver was faster, and its file may be in a folder already
                raise
        for part in [own, *self._others.pop(sha256, [])]:
            part.unlink(missing_ok=True)

    def place(self, sha256: str, target: Path, mode: int, *, is_shared: bool) -> None:
        """Put a file into a folder, under a name.

        Folders share a file only where nothing writes to it. Otherwise the first one to have it gets it by a link,
        which costs nothing, and every other a copy that is checked: the first one may have changed it.

        Args:
            sha256: The file.
            target: Its name there.
            mode: Its mode.
            is_shared: Whether nothing writes to it.

        Raises:
            DamagedFileError: It is not what it was when it came.
        """
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = self._folder / sha256
        is_new = sha256 in self._new
        if is_shared and not is_new:
            self._check(kept, kept)
        if is_shared or is_new:
            kept.chmod(mode)
            _link(kept, target)
            self._new.discard(sha256)
        else:
            shutil.copyfile(kept, target)
            target.chmod(mode)
            self._check(kept, target)

    def _check(self, kept: Path, content: Path) -> None:
        if digest(content) != kept.name:
            kept.unlink()
            raise DamagedFileError(f"{kept.name[:12]} was changed in the cache of this host")


def _lock(part: IO[bytes]) -> bool:
    """Keep other receivers off a part while it is open; return False where one has it, or locks do not work there."""
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _link(source: Path, target: Path) -> None:
    """Give a file a second name that is not taken, or copy it where no file has two."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        draft = target.with_name(f"{target.name}.{os.getpid()}{_PART}copy")
        shutil.copy2(source, draft)
        draft.replace(target)


def _open_part(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    part = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
    _lock(part)
    return part


def _take_over(part: Path, own: Path) -> IO[bytes]:
    with part.open("r+b", buffering=0) as left:
        if _lock(left):
            part.rename(own)
            return os.fdopen(os.dup(left.fileno()), "r+b", buffering=0)  # keeps the lock
        copied = _open_part(own)
        shutil.copyfileobj(left, copied, _BLOCK_BYTES)
        return copied


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another receiver has just completed it
        return 0


def _next_member() -> tarfile.TarInfo | None:
    header = _exactly(tarfile.BLOCKSIZE)
    if any(header):
        return tarfile.TarInfo.frombuf(header, "ascii", "strict")
    _exactly(tarfile.BLOCKSIZE)  # two empty blocks end an archive
    return None


def _exactly(size: int) -> bytes:
    signal.alarm(SILENCE_S)
    data = sys.stdin.buffer.read(size)
    signal.alarm(0)
    if len(data) < size:
        raise ValueError("the files ended early")
    return data


def _write(file: IO[bytes], block: bytes | memoryview) -> None:
    """Write all of a block: a file without a buffer may take only a part of it."""
    view = memoryview(block)
    while view:
        view = view[file.write(view) or 0 :]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
            total.update(block)
    return total.hexdigest()
