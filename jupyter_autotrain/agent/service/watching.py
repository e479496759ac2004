"""The watch over trial directories on their host. It pushes news: streams from subscribed offsets on, and states.

Looking at file sizes is cheap here, and nothing goes over the link while nothing happens. Of each stream at most
a window is under way: more follows when the other end has acknowledged what it took. When a job has ended, its
state is pushed with the sizes of its streams, and it is watched no more: what is left of a stream is subscribed again.
"""

from __future__ import annotations

import os
import stat
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.service import status_resolution, trial_files
from jupyter_autotrain.agent.trial import status as statuses

WINDOW_BYTES = 1 << 18
_LEAST_PAUSE_S = 0.003
_MOST_PAUSE_S = 0.015
_PAUSE_GROWTH = 1.3
_MOST_SHARE = 0.1  # of one CPU that looking may take
_LOOK_AGAIN_S = 1.0  # a status file does not change when its writer is killed
_DOUBT_AGAIN_S = 0.05
_NEVER_PUSHED = object()

Write = Callable[[Mapping[str, object]], None]


class _Stream:
    """One stream of a job: pushed up to `offset`, and acknowledged up to `taken`."""

    __slots__ = ("fault", "name", "offset", "taken")

    def __init__(self, name: str, offset: int) -> None:
        self.name = name
        self.offset = offset
        self.taken = offset
        self.fault = ""

    def has_more(self, directory: Path) -> bool:
        """Tell whether bytes lie there that are not pushed, or a fault that is not told."""
        try:
            found = os.lstat(directory / self.name)
        except OSError:
            return False
        return found.st_size > self.offset if stat.S_ISREG(found.st_mode) else not self.fault

    def size(self, directory: Path) -> int:
        """Return the length of the stream; 0 where it is no regular file."""
        try:
            found = os.lstat(directory / self.name)
        except OSError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def next_piece(self, directory: Path, window_bytes: int) -> list[object] | None:
        """Return the offset, bytes (base64), fault and whether it lasts; None when there is no room for more now."""
        room = self.taken + window_bytes - self.offset
        if room <= 0:
            return None
        data, size, fault, is_lasting = trial_files.read_piece(directory, self.name, self.offset, room)
        if not size and fault == self.fault:
            return None
        piece = [self.offset, data, fault, is_lasting]
        self.offset += size
        self.fault = fault
        return piece


class _Job:
    """One job: the state of its streams and status, and the part of them that was pushed last."""

    __slots__ = ("directory", "mark", "name", "pushed", "seen_s", "status", "streams")

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.streams: dict[str, _Stream] = {}
        self.status: object = None
        self.pushed: object = _NEVER_PUSHED
        self.mark: object = None
        self.seen_s = 0.0

    def look(self) -> dict[str, object] | None:
        """Return the message to push, or None.

        The state is resolved first: the streams of a job that has ended are complete.
        """
        self._resolve()
        message: dict[str, object] = {"push": self.name}
        if pieces := self._pieces():
            message["streams"] = pieces
        if self.status != self.pushed:
            message["status"] = self.status
            self.pushed = self.status
            if self.is_over:
                message["sizes"] = {stream.name: stream.size(self.directory) for stream in self.streams.values()}
        return message if len(message) > 1 else None

    def _pieces(self) -> dict[str, list[object]]:
        window_bytes = trial_files.MOST_BYTES if self.is_over else WINDOW_BYTES
        pieces = {}
        for stream in self.streams.values():
            piece = stream.next_piece(self.directory, window_bytes) if stream.has_more(self.directory) else None
            if piece is not None:
                pieces[stream.name] = piece
        return pieces

    def _resolve(self) -> None:
        now_s = time.monotonic()
        mark = self._mark()
        again_s = _DOUBT_AGAIN_S if isinstance(self.status, str) else _LOOK_AGAIN_S
        if self.pushed is not _NEVER_PUSHED and mark == self.mark and now_s - self.seen_s < again_s:
            return
        self.mark = mark
        self.seen_s = now_s
        try:
            self.status = status_resolution.resolve_status(self.directory)
        except statuses.UnknownError as error:
            self.status = str(error)

    def _mark(self) -> object:
        try:
            found = os.lstat(self.directory / wire.STATUS_FILE)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @property
    def is_over(self) -> bool:
        """True when the job has ended."""
        return isinstance(self.status, dict) and statuses.is_final(self.status)


class JobWatcher:
    """The watcher that pushes the news of the subscribed jobs.

    Args:
        write: Sends a message to the other end.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._jobs: dict[str, _Job] = {}
        self._changed = threading.Condition()

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        threading.Thread(target=self._watch_or_end, daemon=True).start()

    def subscribe(self, name: str, directory: Path, offsets: Mapping[str, int]) -> None:
        """Push the state of a job, and its streams from these offsets on.

        All that is there now is pushed before this returns.
        """
        with self._changed:
            job = self._jobs.setdefault(name, _Job(name, directory))
            for stream, offset in offsets.items():
                job.streams[stream] = _Stream(stream, offset)
            job.pushed = _NEVER_PUSHED
            self._push(job)
            self._changed.notify()

    def refresh(self, name: str) -> None:
        """Push the news of a job now, if it is subscribed."""
        with self._changed:
            job = self._jobs.get(name)
            if job is not None:
                job.mark = _NEVER_PUSHED
                self._push(job)

    def acknowledge(self, name: str, stream: str, offset: int) -> None:
        """Note that the other end has taken a stream up to an offset."""
        with self._changed:
            job = self._jobs.get(name)
            if job is not None and stream in job.streams:
                job.streams[stream].taken = max(job.streams[stream].taken, offset)
                self._push(job)

    def unsubscribe(self, name: str) -> None:
        """Push no more of a job."""
        with self._changed:
            self._jobs.pop(name, None)

    def _push(self, job: _Job) -> bool:
        message = job.look()
        if message is not None:
            self._write(message)
        return message is not None

    def _watch_or_end(self) -> None:
        """Watch, and end the agent when that fails: without pushes it is of no use, and another one is started."""
        try:
            self._watch()
        finally:
            traceback.print_exc()
            os._exit(1)

    def _watch(self) -> None:
        pause_s = _LEAST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._jobs))
                jobs = list(self._jobs.values())
            begun_s = time.monotonic()
            news = list(map(self._look, jobs))
            took_s = time.monotonic() - begun_s
            pause_s = _LEAST_PAUSE_S if any(news) else min(pause_s * _PAUSE_GROWTH, _MOST_PAUSE_S)
            time.sleep(max(pause_s, took_s / _MOST_SHARE))

    def _look(self, job: _Job) -> bool:
        with self._changed:
            has_news = self._push(job)
            if job.is_over and self._jobs.get(job.name) is job:  # not subscribed anew meanwhile
                del self._jobs[job.name]
            return has_news
