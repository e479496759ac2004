"""Fetching a file by its URL into the cache of data: once per content and place, verified, resumed after a cut.

Trials that need the same file wait for the one that fetches it; where that one is killed, the next goes on with what is
there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from jupyter_autotrain.core import disk
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.errors import DataError
from jupyter_autotrain.worker.data_cache import DataCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _hashlib import HASH
    from typing import BinaryIO

_BLOCK_BYTES = 1 << 20
_SILENCE_S = 60.0
_TRIES = 4
_PAUSE_S = 1.0
_TELL_EVERY_S = 5.0
_ENDED = 416  # "Range Not Satisfiable": the part is as long as the file


def fetch(cache: DataCache, url: str, sha256: str, file_name: str, directory: str) -> str:
    """Give the path of a file, fetched unless it is there.

    Args:
        cache: Where it is kept.
        url: Where it is.
        sha256: Its digest.
        file_name: How to call it.
        directory: The trial directory of the trial that needs it.

    Raises:
        DataError: It cannot be fetched, does not fit, or has another digest.
    """
    with _alone(f"{cache.part(sha256)}.lock"):
        is_here = cache.use(sha256, directory)
        try:
            if not is_here:
                _download(cache, url, sha256)
                _keep(cache, sha256, file_name)
            return cache.name(sha256, file_name)  # another URL may have had the same file by another name
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise _failed(url, error, cache.root) from error


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _keep(cache: DataCache, sha256: str, file_name: str) -> None:
    folder = cache.folder(sha256)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(cache.part(sha256), 0o400)
    os.replace(cache.part(sha256), f"{folder}/{file_name}")
    cache.complete(sha256)


def _download(cache: DataCache, url: str, sha256: str) -> None:
    for attempt in range(_TRIES):
        try:
            found = _go_on(cache, url, cache.part(sha256))
            break
        except (OSError, EOFError, http.client.HTTPException) as error:  # `URLError` and timeouts are OSErrors
            if attempt == _TRIES - 1 or not _may_pass(error):
                raise
            time.sleep(_PAUSE_S * 2**attempt)
    if found != sha256:
        os.unlink(cache.part(sha256))
        raise DataError(
            f"The file at {url} has the SHA-256 {found}.",
            f"The header says {sha256}.",
            "Correct `sha256:`, if that is the file you mean; it was not used.",
        )


def _may_pass(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500 or error.code in {408, 429}
    return not disk.is_full(error) and not isinstance(error, (FileNotFoundError, PermissionError))


def _go_on(cache: DataCache, url: str, path: str) -> str:
    """Fetch what is missing of a part; gives the digest of the whole."""
    total, offset = _digest_of_part(path)
    request = urllib.request.Request(url, headers={"Range": f"bytes={offset}-"} if offset else {})  # noqa: S310 - the header allows https, http and file
    try:
        answer = urllib.request.urlopen(request, timeout=_SILENCE_S)  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        if error.code != _ENDED:
            raise
        return total.hexdigest()
    with answer:
        if answer.status != 206:  # the server sends all of it, or it is a file here, whose status is None
            total = hashlib.sha256()
            offset = 0
        rest = answer.headers.get("Content-Length")
        size_bytes = offset + int(rest) if rest else None
        cache.make_room(size_bytes - _size(path) if size_bytes else 0)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb") as part:
            part.truncate(offset)
            part.seek(offset)
            _copy(answer, part, total, _Progress(url, offset, size_bytes))
            received = part.tell()
    if size_bytes is not None and received < size_bytes:
        raise EOFError(f"the connection ended after {format_bytes(received)} of {format_bytes(size_bytes)}")
    return total.hexdigest()


def _size(path: str) -> int:
    return os.stat(path).st_size if os.path.exists(path) else 0


def _digest_of_part(path: str) -> tuple[HASH, int]:
    total = hashlib.sha256()
    if not os.path.exists(path):
        return total, 0
    with open(path, "rb") as part:
        for block in iter(lambda: part.read(_BLOCK_BYTES), b""):
            total.update(block)
        return total, part.tell()


def _copy(source: BinaryIO, target: BinaryIO, total: HASH, progress: _Progress) -> None:
    while block := source.read(_BLOCK_BYTES):
        target.write(block)
        total.update(block)
        progress.add(len(block))


class _Progress:
    """Prints how far a download is, every few seconds, with its rate and the time that is left.

    Args:
        url: What is fetched.
        offset: Bytes that were there before.
        size_bytes: Of the whole; None when the server does not say.
    """

    def __init__(self, url: str, offset: int, size_bytes: int | None) -> None:
        self._url = url
        self._size_bytes = size_bytes
        self._done_bytes = offset
        self._new_bytes = 0
        self._begun_s = self._told_s = time.monotonic()

    def add(self, size_bytes: int) -> None:
        """Count what has come."""
        self._done_bytes += size_bytes
        self._new_bytes += size_bytes
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EVERY_S:
            self._told_s = now_s
            sys.stderr.write(f"autotrain: {self._line(self._new_bytes / (now_s - self._begun_s))}\n")

    def _line(self, bytes_per_s: float) -> str:
        text = f"{self._url}: {format_bytes(self._done_bytes)}"
        if self._size_bytes is None:
            return f"{text}, {format_bytes(bytes_per_s)}/s"
        left_s = (self._size_bytes - self._done_bytes) / bytes_per_s
        return f"{text} of {format_bytes(self._size_bytes)}, {format_bytes(bytes_per_s)}/s, {left_s:.0f} s left"


def _failed(url: str, error: Exception, root: str) -> DataError:
    if disk.is_full(error):
        return DataError(
            f"The disk of {root} is full.", f"Room for {url}.", "Free some of it; the next try goes on where it ended."
        )
    why = getattr(error, "reason", None) or error
    return DataError(
        f"{url} cannot be fetched: {why}.",
        "A URL that this machine can reach.",
        "Correct `url:`, or send the file from here: `NAME: ./file`; what has come is kept for the next try.",
    )
