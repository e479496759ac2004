"""Writes what the trial's files hold to the pod's log, as frames.

Everything that grows is read from where the last look ended; what lies there at the trial's end comes then, small files
first, as far as they fit. The log of a pod is rotated, so a pod that has written much waits until all is collected.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable

from jupyter_autotrain.backends.kubernetes_pod import frames, places
from jupyter_autotrain.core import files, wire

MOST_FILE_BYTES = 4 << 20  # of the files that a trial leaves, all together
SAFE_LOG_BYTES = 5 << 20  # half of what a node keeps of a log before it rotates it
_READ_BYTES = 1 << 20
_NAME_AGAIN_BYTES = 1 << 20
_STREAMS = frozenset({wire.STDOUT, wire.STDERR, wire.METRICS, wire.PARTIALS, wire.USAGE, wire.LAUNCHER_LOG})
_FOLDERS = (wire.OUTPUTS, wire.WORK, wire.CHECKPOINTS)


class Relay:
    """The files of a trial, on their way into the log.

    Args:
        run: The folder of everything in the pod.
        write: Writes lines to the log.
        node: Which node of the trial this is.
        job: Which trial, where the log is that of several.

    Attributes:
        written_bytes: How much was written to the log.
        left: The files that are not in the log.
    """

    def __init__(self, run: str, write: Callable[[str], None], node: int = 0, job: str = "") -> None:
        self.written_bytes = 0
        self._node = node
        self._job = job
        self._named_at_bytes = -_NAME_AGAIN_BYTES
        self.left: list[str] = []
        self._run = run
        self._directory = f"{run}/{places.TRIAL}"
        self._write = write
        self._offsets: dict[str, int] = {}
        self._status = b""

    def look(self) -> bool:
        """Send what is new; True where there was something."""
        before = self.written_bytes
        for name in self._streams():
            self._send_growing(self._directory, name)
        self._note_status()
        self._send_growing(self._run, places.STATES)
        return self.written_bytes > before

    def _streams(self) -> list[str]:
        try:
            names = os.listdir(self._directory)
        except OSError:
            return []
        return sorted(name for name in names if wire.base_of_stream(name) in _STREAMS)

    def _send_growing(self, folder: str, name: str) -> None:
        while True:
            offset = self._offsets.get(name, 0)
            try:
                data = files.read(folder, name, _READ_BYTES, offset)
            except OSError:
                return  # nothing that can be read lies there
            if not data:
                return
            self._send(name, offset, data)
            self._offsets[name] = offset + len(data)

    def _send(self, path: str, offset: int, data: bytes) -> None:
        if self.written_bytes - self._named_at_bytes >= _NAME_AGAIN_BYTES:  # a rotated log says it, too
            self._named_at_bytes = self.written_bytes
            if self._job:
                self._send(places.JOB, 0, self._job.encode())
            self._send(places.NODE, 0, str(self._node).encode())
        for line in frames.encode(path, offset, data):
            self._write(line)
            self.written_bytes += len(line)

    def _note_status(self) -> None:
        """Keep each content of the status file, in a file that grows."""
        try:
            data = files.read(self._directory, wire.STATUS_FILE, files.MOST_JSON_BYTES)
        except OSError:
            return
        if data and data != self._status:
            self._status = data
            with open(f"{self._run}/{places.STATES}", "ab") as file:
                file.write(data.replace(b"\n", b" ") + b"\n")

    def finish(self) -> None:
        """The trial has ended: send the rest, the files it has left, and last what there is."""
        self.look()
        sizes = self._sizes()
        room_bytes = MOST_FILE_BYTES
        for path in sorted(sizes, key=lambda one: sizes[one]):
            room_bytes -= sizes[path]
            if room_bytes < 0:
                self.left.append(path)
            else:
                self._send_growing(self._directory, path)
        for name in self._streams():
            sizes[name] = self._offsets.get(name, 0)
        listing = json.dumps({"sizes": sizes, "left": self.left, "time_s": time.time()}).encode() + b"\n"
        self._send(places.FILES, 0, listing)

    def _sizes(self) -> dict[str, int]:
        """The regular files of the trial's folders."""
        found = {}
        for folder in _FOLDERS:
            try:
                inside = list(files.walk(f"{self._directory}/{folder}"))
                for name, kind in inside:
                    if kind == stat.S_IFREG:
                        path = f"{folder}/{name}"
                        found[path] = os.lstat(f"{self._directory}/{path}").st_size
            except OSError:
                continue  # it is not there
        return found

    @property
    def fits_into_log(self) -> bool:
        """True where the log surely holds everything."""
        return not self.left and self.written_bytes < SAFE_LOG_BYTES
