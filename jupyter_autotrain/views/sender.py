"""A thread per live view, which reads the store and sends the news, also of an experiment that is begun again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store
from jupyter_autotrain.views.feed import Feed, FeedFrame, snapshot
from jupyter_autotrain.views.log_window import LogTailReader

_POLL_S: Final = 0.02
_PERIOD_S: Final = 0.1
_HEARTBEAT_S: Final = 2.0
_LOG_PERIOD_S: Final = 0.5
_REST_S: Final = 1.0

Send = Callable[[JsonObject, list[bytes]], None]


class FeedSender:
    """A sender that feeds one view, at most ten times a second.

    Args:
        store: The store.
        experiment_id: The experiment.
        send: Gives a message with its buffers to the front end; called on the sender's thread.
        ended: Called on the sender's thread after the last frame of an experiment that has ended, each time it ends.
        manager_fault: As of `Feed`.
    """

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        send: Send,
        ended: Callable[[], None],
        manager_fault: Callable[[], str] = str,
    ) -> None:
        self._store = store
        self._id = experiment_id
        self._send = send
        self._ended = ended
        self._manager_fault = manager_fault
        self._feed = Feed(store, experiment_id, manager_fault)
        self._stopped = threading.Event()
        self._ended_as: ExperimentRecord | None = None  # as it was shown last, where it has ended
        self._log: tuple[JsonObject, LogTailReader] | None = None
        self._log_size = -1
        self._frame_lock = threading.Lock()  # frames are sent in the order in which they were read
        self._log_lock = threading.Lock()  # front ends ask on other threads
        self._thread = threading.Thread(target=self._run, name=f"autotrain-view-{experiment_id}", daemon=True)

    @property
    def seq(self) -> int:
        """The number of the newest frame."""
        return self._feed.seq

    @property
    def alive(self) -> bool:
        """True while it follows the experiment."""
        return self._thread.is_alive()

    def start(self, *, is_ended: bool = False) -> None:
        """Take the state that the front end gets with the view, then follow.

        Args:
            is_ended: Whether the experiment had ended before anything of it was read to be shown: then only what
                happens to it afterwards is news.
        """
        if is_ended:
            self._ended_as = self._store.experiment(self._id)
        else:
            self._feed.delta(time.time())
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and return immediately."""
        self._stopped.set()

    def send_whole(self) -> None:
        """Send the whole state, to a front end that has missed something."""
        with self._frame_lock:
            self._send_frame(snapshot(self._store, self._id, time.time(), self.seq, self._manager_fault))

    def follow_log(self, request: JsonObject, path: Path) -> None:
        """Send the tail of this log now, and again when it grows; each message repeats `request`."""
        with self._log_lock:
            self._log = (request, LogTailReader(path))
            self._log_size = -1
        self._send_log()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._ended_as is None:
                self._follow()
            else:
                self._rest(self._ended_as)

    def _follow(self) -> None:
        """Send the news until the experiment has ended."""
        seen = -1
        sent_s = 0.0
        log_s = 0.0
        while self._ended_as is None and not self._stopped.wait(_POLL_S):
            now_s = time.monotonic()
            if now_s - log_s >= _LOG_PERIOD_S:
                log_s = now_s
                self._send_log()
            try:
                version = self._store.data_version() if now_s - sent_s >= _PERIOD_S else seen
                if version != seen or now_s - sent_s >= _HEARTBEAT_S:
                    seen = version
                    sent_s = now_s
                    self._send_delta()
            except AutotrainError:
                # The experiment was deleted, or the disk fails: the view keeps its last state and this tries again.
                self._stopped.wait(_HEARTBEAT_S)
        if not self._stopped.is_set():
            self._send_log()
            with suppress(AutotrainError):  # as above
                self._ended()

    def _rest(self, shown: ExperimentRecord) -> None:
        """Wait until something happens to an experiment that has ended: it is begun again, or its name changes."""
        record = shown
        while record == shown and not self._stopped.wait(_REST_S):
            self._send_log()
            with suppress(AutotrainError):  # as above
                record = self._store.experiment(self._id)
        self._ended_as = None

    def _send_delta(self) -> None:
        with self._frame_lock:
            frame = self._feed.delta(time.time())
            self._send_frame(frame)
        self._ended_as = frame.ended

    def _send_frame(self, frame: FeedFrame) -> None:
        self._send({"kind": "frame", **frame.content}, frame.buffers)

    def _send_log(self) -> None:
        with self._log_lock:
            if self._log is None:
                return
            request, log = self._log
            size = log.size()
            if size == self._log_size:
                return
            self._log_size = size
            tail = log.read()
        self._send({**request, "kind": "log", "text": tail.text, "left_out": tail.left_out, "bytes": size}, [])
