"""The things that trials of one host need there, sent where they are missing: code, and checkpoints from elsewhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.transfer.folders import FolderManifest, scan_folder
from jupyter_autotrain.backends.transfer.sending import DamagedFileError, ProgressCallback

_KEPT_KIND = "kept_bundles"  # of those without a limit, as of jobs that a cluster begins whenever it likes


class _Link(Protocol):
    """The part of `HostLink` that is needed here."""

    config: HostConfig

    def ask(self, do: str, **content: object) -> JsonValue: ...

    def prepare_to_send(self) -> None: ...

    def send_folder(
        self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None
    ) -> str: ...


class SentFolders:
    """The folders sent over one link; thread-safe. Room is made for each below the profile's `cache_limit`."""

    def __init__(self, link: _Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._folders: dict[Path, FolderManifest] = {}
        self._sent: dict[str, str] = {}
        self._sending: dict[str, threading.Lock] = {}

    def send_bundle(self, root: Path, progress: ProgressCallback | None = None) -> str:
        """Send a folder that does not change any more, unless it is there, and return its path on the host.

        Raises:
            BackendUnavailableError: The host cannot be reached, or does not answer any more.
            BackendError: It cannot take the folder.
        """
        with self._lock:
            folder = self._folders.get(root)
        if folder is None:
            self._link.prepare_to_send()
            folder = scan_folder(root)
        with self.sending(folder.digest):
            sent = self._sent.get(folder.digest)
            if sent is None:
                sent = self._send_bundle(folder, progress)
            with self._lock:
                self._folders[root] = folder
                self._sent[folder.digest] = sent
        return sent

    def _send_bundle(self, folder: FolderManifest, progress: ProgressCallback | None) -> str:
        kind = _KEPT_KIND if self._link.config.cache_limit_bytes is None else "bundles"
        try:
            return self._send(folder, kind, progress)
        except DamagedFileError:  # an earlier trial wrote to its own code; that file is gone from the cache now
            return self._send(folder, kind, progress)

    def send_checkpoints(self, root: Path) -> str:
        """Send the checkpoints that a trial goes on from, unless they are there; return their path on the host.

        The errors are those of `send_bundle`.
        """
        return self._send(scan_folder(root), wire.CHECKPOINTS)

    def send_to_job(self, root: Path, folder: str) -> str:
        """Send a folder that only one job needs into that job's directory, with which it is deleted.

        The errors are those of `send_bundle`.
        """
        return self._link.send_folder(scan_folder(root), self._link.config.workdir, f"jobs/{folder}")

    def _send(self, folder: FolderManifest, kind: str, progress: ProgressCallback | None = None) -> str:
        limit_bytes = self._link.config.cache_limit_bytes
        if limit_bytes is not None:
            name = f"{kind}/{folder.digest}"
            size_bytes = 2 * folder.size_bytes  # the files as received, and the folder
            self._link.ask("make_room", folder=name, size_bytes=size_bytes, limit_bytes=limit_bytes)
        return self._link.send_folder(folder, self._link.config.workdir, kind, progress)

    def forget(self, path: str) -> None:
        """Have a bundle sent again the next time: it is gone from the host."""
        with self._lock:
            self._sent.pop(Path(path).name, None)

    def forget_all(self) -> None:
        """Have every bundle looked for again the next time."""
        with self._lock:
            self._sent.clear()

    @contextlib.contextmanager
    def sending(self, digest: str) -> Iterator[None]:
        """Let one thread at a time send the folder with this digest."""
        with self._lock:
            one_at_a_time = self._sending.setdefault(digest, threading.Lock())
        with one_at_a_time:
            yield
