"""Runs on a host, sent there as text: receives folders of files, named by the digest of what is in them.

Needs only the standard library of Python 3.9. On standard input come lines of JSON and one tar stream; answers go to
standard output, one line of JSON each:

```
-> {"root", "kind", "digest"}         <- {"is_complete": true}, or false and then:
-> {"files": [[path, size, sha256, is_executable]], "folders": [path]}
                                       <- {"needed": {sha256: bytes that are there}}
-> tar; a member is named sha256@offset <- {"is_complete": true}, or {"error": text}
```

A file is kept by its digest before its folder is complete, so a second attempt, and the next folder that holds the
same file, need not send it again. Of a file that was cut the beginning is kept.
"""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import tarfile
from pathlib import Path
from typing import IO, Any

_BLOCK_BYTES = 1 << 20
_SILENCE_S = 60
# Of an agent's many modules Python compiles those that it imports, and keeps them.
_COMPILED = ("bundles", "kept_bundles")
_DATA_KIND = "folders"  # of the cache of data, see `worker.data_cache`
Message = dict[str, Any]


def receive() -> Path:
    """Receive one folder; gives its path."""
    asked = _line()
    root = Path(os.path.abspath(Path(asked["root"]).expanduser()))  # noqa: PTH100 - links stay as the user wrote them
    goal = root / str(asked["kind"]) / str(asked["digest"])
    if not goal.is_dir():
        _receive_into(root, goal)
    with contextlib.suppress(FileNotFoundError):  # room was just made for another folder; its user will notice
        os.utime(goal)
    _answer({"is_complete": True, "path": str(goal)})
    return goal


def _receive_into(root: Path, goal: Path) -> None:
    blobs = root / "blobs"
    for folder in (root, goal.parent, blobs):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(blobs, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_SH)  # no file goes until the folder is complete, or this process ends
    _answer({"is_complete": False})
    wanted = _line()
    sizes = {sha256: size for _, size, sha256, _ in wanted["files"]}
    _answer({"needed": _needed(blobs, sizes)})
    received = _unpack(blobs, sizes)
    _assemble(blobs, wanted, goal, received)
    os.close(lock)


def _line() -> Message:
    signal.alarm(_SILENCE_S)  # a server does not notice that a link is cut, so this program would stay forever
    line = sys.stdin.buffer.readline()
    signal.alarm(0)
    if not line.endswith(b"\n"):  # the other end is gone
        os._exit(0)
    content: Message = json.loads(line)
    return content


def _answer(content: Message) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def _needed(blobs: Path, sizes: dict[str, int]) -> dict[str, int]:
    """Of each file that is not there: how many of its first bytes are, in a part of our own."""
    missing = [sha256 for sha256 in sizes if not (blobs / sha256).exists()]
    return {sha256: _take_part(blobs, sha256, sizes[sha256]) for sha256 in missing}


def _take_part(blobs: Path, sha256: str, size: int) -> int:
    """Copy the longest part that another receiver has left: it may still hold it open."""
    longest = max(_parts(blobs, sha256), key=_size, default=None)
    if longest is None or _size(longest) >= size:
        return 0
    own = _part(blobs, sha256)
    if longest != own:
        shutil.copyfile(longest, own)
    return _size(own)


def _size(path: Path) -> int:
    return path.stat().st_size


def _parts(blobs: Path, sha256: str) -> list[Path]:
    return list(blobs.glob(f"{sha256}.part-*"))


def _part(blobs: Path, sha256: str) -> Path:
    return blobs / f"{sha256}.part-{os.getpid()}"


def _unpack(blobs: Path, sizes: dict[str, int]) -> set[str]:
    """Take in the files that come; gives their digests, which have been checked.

    The blocks of the archive are read here: `tarfile` passes on a few kilobytes at a time, at half the speed.
    """
    received = set()
    while member := _next_member():
        sha256, _, offset = member.name.partition("@")
        if sha256 not in sizes:
            raise ValueError(f"{member.name} was not asked for")
        _accept(blobs, sha256, _write_part(member.size, _part(blobs, sha256), int(offset)))
        _exactly(-member.size % tarfile.BLOCKSIZE)
        received.add(sha256)
    return received


def _next_member() -> tarfile.TarInfo | None:
    header = _exactly(tarfile.BLOCKSIZE)
    if any(header):
        return tarfile.TarInfo.frombuf(header, "ascii", "strict")
    _exactly(tarfile.BLOCKSIZE)  # two empty blocks end an archive
    return None


def _exactly(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise ValueError("the files ended early")
    return data


def _write_part(size: int, path: Path, offset: int) -> str:
    """Write a part on from an offset by so many bytes that come; gives the digest of all of it."""
    total = hashlib.sha256()
    buffer = memoryview(bytearray(_BLOCK_BYTES))
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as part:
        part.truncate(offset)
        for block in iter(lambda: part.read(_BLOCK_BYTES), b""):
            total.update(block)
        while size:
            signal.alarm(_SILENCE_S)
            count = sys.stdin.buffer.readinto1(buffer[:size])  # type: ignore[union-attr]  # it is buffered
            if not count:
                raise ValueError("the files ended early")
            _write(part, buffer[:count])
            total.update(buffer[:count])
            size -= count
    signal.alarm(0)
    return total.hexdigest()


def _write(file: IO[bytes], block: bytes | memoryview) -> None:
    """Write all of a block: a file without a buffer may take only a part of it."""
    view = memoryview(block)
    while view:
        view = view[file.write(view) or 0 :]


def _accept(blobs: Path, sha256: str, found: str) -> None:
    """Give a part its name if its content has the digest; all other parts of it are of no use any more."""
    own = _part(blobs, sha256)
    if found != sha256:
        own.unlink()
        raise ValueError(f"a file was damaged on its way: {found} came for {sha256}")
    try:
        own.replace(blobs / sha256)
    except FileNotFoundError:
        if not (blobs / sha256).exists():  # else another receiver was faster, and has removed this part
            raise
    for part in _parts(blobs, sha256):
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
            total.update(block)
    return total.hexdigest()


def _assemble(blobs: Path, wanted: Message, goal: Path, received: set[str]) -> None:
    """Make the folder; complete or not there.

    It is of copies, so that a change of one does not change another folder's. Only data, which is big, is of hard
    links, without the right to write.
    """
    is_data = goal.parent.name == _DATA_KIND
    draft = goal.with_name(f"{goal.name}.draft-{os.getpid()}")
    try:
        draft.mkdir(mode=0o700)
        for path in wanted["folders"]:
            _inside(draft, path).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, _, sha256, is_executable in wanted["files"]:
            target = _inside(draft, path)
            if is_data:
                _link(blobs / sha256, target, 0o500 if is_executable else 0o400, is_checked=sha256 in received)
            else:
                _copy(blobs / sha256, target, 0o700 if is_executable else 0o600, is_checked=sha256 in received)
        if goal.parent.name in _COMPILED:
            compileall.compile_dir(str(draft), quiet=2, ddir=str(goal))
        if not goal.is_dir():  # else another one was faster
            draft.rename(goal)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy(blob: Path, target: Path, mode: int, *, is_checked: bool) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(blob, target)
    target.chmod(mode)
    if not is_checked:
        _check(blob, target)


def _link(blob: Path, target: Path, mode: int, *, is_checked: bool) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_checked:
        _check(blob, blob)
    blob.chmod(mode)
    os.link(blob, target)


def _check(blob: Path, content: Path) -> None:
    if _digest(content) != blob.name:
        blob.unlink()
        raise ValueError(f"{blob.name[:12]} is damaged in the cache of this host; it is sent again the next time")


def _inside(folder: Path, path: str) -> Path:
    target = Path(os.path.normpath(folder / path))
    if folder not in target.parents:
        raise ValueError(f"{path} leads out of the folder")
    return target


def main() -> Path:
    """Receive one folder, and say why where it cannot be."""
    os.umask(0o077)
    try:
        return receive()
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        _answer({"error": str(error) or type(error).__name__})
        os._exit(1)


def serve() -> None:
    """Receive folders until no more come."""
    while True:
        main()
