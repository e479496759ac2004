"""Downloads: a file from a server or from here, gone on with where it was cut, tried again while that may help.

The manager's side uses the tries too. Standard library of Python 3.9 alone.

`fetch` puts a file into the cache of data: once per content and place, and verified. Trials that need the same file
wait for the one that fetches it; where that one is killed, the next goes on with what is there.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from jupyter_autotrain.agent import locks
from jupyter_autotrain.agent.errors import DataError
from jupyter_autotrain.agent.objects.data_cache import DataCache
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.system import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _hashlib import HASH
    from http.client import HTTPResponse
    from typing import BinaryIO, TypeVar

    T = TypeVar("T")

BLOCK_BYTES = 1 << 20
SILENCE_S = 60.0
FAULTS = (OSError, EOFError, http.client.HTTPException)  # `URLError` and timeouts are OSErrors
_TRIES = 4
_PAUSE_S = 1.0
_ENDED = 416  # "Range Not Satisfiable": the part is as long as the file
_PARTIAL = 206

Request = Callable[[dict[str, str]], "HTTPResponse"]
Progress = Callable[[int], object]
_TELL_EVERY_S = 5.0


def again(ask: Callable[[], T]) -> T:
    """Ask, and ask again after a fault that may pass; raise the last one of `FAULTS`."""
    for attempt in range(_TRIES - 1):
        try:
            return ask()
        except FAULTS as error:
            if not _may_pass(error):
                raise
        time.sleep(_PAUSE_S * 2**attempt)
    return ask()


def _may_pass(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500 or error.code in {408, 429}
    return not disk.is_full(error) and not isinstance(error, (FileNotFoundError, PermissionError))


def complete(
    part: str,
    request: Request,
    begin: Callable[[int, int | None], Progress] = lambda _offset, _size_bytes: lambda _new_bytes: None,
) -> str:
    """Fetch the missing bytes of a part; return the SHA-256 of the whole.

    Args:
        part: The file; what is there of it is not fetched again, where the server can leave it out.
        request: Asks for the file, with these headers.
        begin: Called with the bytes that are there, and those of the whole where the server says them; gives what is
            called with the number of bytes of each block that comes.

    Raises:
        OSError, EOFError, HTTPException: It cannot be fetched or written.
    """
    return again(lambda: _go_on(part, request, begin))


def _go_on(part: str, request: Request, begin: Callable[[int, int | None], Progress]) -> str:
    total, offset = _digest_of(part)
    try:
        answer = request({"Range": f"bytes={offset}-"} if offset else {})
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != _ENDED:
            raise
        return total.hexdigest()
    with answer:
        if answer.status != _PARTIAL:  # the server sends all of it, or it is a file here, whose status is None
            total = hashlib.sha256()
            offset = 0
        rest = answer.headers.get("Content-Length")
        size_bytes = offset + int(rest) if rest else None
        progress = begin(offset, size_bytes)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.truncate(offset)
            file.seek(offset)
            _copy(answer, file, total, progress)
            received = file.tell()
    if size_bytes is not None and received < size_bytes:
        raise EOFError(f"the connection ended after {format_bytes(received)} of {format_bytes(size_bytes)}")
    return total.hexdigest()


def _digest_of(part: str) -> tuple[HASH, int]:
    total = hashlib.sha256()
    if not os.path.exists(part):
        return total, 0
    with open(part, "rb") as file:
        for block in iter(lambda: file.read(BLOCK_BYTES), b""):
            total.update(block)
        return total, file.tell()


def _copy(source: BinaryIO, target: BinaryIO, total: HASH, progress: Progress) -> None:
    while block := source.read(BLOCK_BYTES):
        target.write(block)
        total.update(block)
        progress(len(block))


def fetch(cache: DataCache, url: str, sha256: str, file_name: str, directory: str) -> str:
    """Return the path of a file, fetched unless it is there.

    Args:
        cache: Where it is kept.
        url: Where it is.
        sha256: Its digest.
        file_name: How to call it.
        directory: The trial directory of the trial that needs it.

    Raises:
        DataError: It cannot be fetched, does not fit, or has another digest.
    """
    with locks.alone(f"{cache.part(sha256)}.lock", is_needed=True):
        is_here = cache.use(sha256, directory)
        try:
            if not is_here:
                _download(cache, url, sha256)
                _keep(cache, sha256, file_name)
            return cache.name(sha256, file_name)  # another URL may have had the same file by another name
        except FAULTS as error:
            raise _failed(url, error, cache.root) from error


def _keep(cache: DataCache, sha256: str, file_name: str) -> None:
    folder = cache.folder(sha256)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(cache.part(sha256), 0o400)
    os.replace(cache.part(sha256), f"{folder}/{file_name}")
    cache.complete(sha256)


def _download(cache: DataCache, url: str, sha256: str) -> None:
    part = cache.part(sha256)

    def ask(headers: dict[str, str]) -> HTTPResponse:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the header allows https, http and file
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=SILENCE_S)  # noqa: S310 - as above
        return answer

    def begin(offset: int, size_bytes: int | None) -> Progress:
        there = os.stat(part).st_size if os.path.exists(part) else 0
        cache.make_room(size_bytes - there if size_bytes else 0)
        return _Progress(url, offset, size_bytes).add

    found = complete(part, ask, begin)
    if found != sha256:
        os.unlink(part)
        raise DataError(
            f"The file at {url} has the SHA-256 {found}.",
            f"The header says {sha256}.",
            "Correct `sha256:`, if that is the file you mean; it was not used.",
        )


class _Progress:
    """The progress of a download, printed every few seconds with its rate and the time that is left.

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
        """Count bytes that have come."""
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
