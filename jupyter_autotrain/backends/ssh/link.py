"""The link to one host: one connection, one agent, questions, answers and pushed news; made again when it is lost.

While a host does not answer, questions fail at once and a new connection is tried at growing intervals.

`HostDirectory` is a trial directory there, by the requests of the agent.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import IO, Final, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.directories import write_pieces
from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh.agent_connection import AgentConnection, HostConfig
from jupyter_autotrain.backends.ssh.large_channels import RemoteFile
from jupyter_autotrain.backends.ssh.sent_folders import SentFolders
from jupyter_autotrain.backends.transfer.channels import LinkLostError, no_answer
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.backends.transfer.sending import ProgressCallback
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

_FIRST_PAUSE_S = 0.25
_MOST_PAUSE_S = 15.0
_CONNECT_S = 300.0  # each step of it has a deadline of its own
_LARGE_BYTES: Final = 1 << 20  # larger files come on a channel of their own


class HostLink:
    """The link to one host; thread-safe.

    Args:
        config: The host, and where trials run there.
        clock: Gives seconds that never go back.

    Attributes:
        sent: The folders that were sent to the host.
    """

    def __init__(self, config: HostConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self.sent = SentFolders(self)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: AgentConnection | None = None
        self._attempt: Future[AgentConnection] | None = None
        self._failure: BackendUnavailableError | None = None
        self._lost_at_s = 0.0  # by the wall clock, for people
        self._silent_since_s: float | None = None
        self._retry_at_s = 0.0
        self._pause_s = 0.0
        self._closed = threading.Event()
        self._on_news: Callable[[Collection[str]], None] = lambda _names: None

    def subscribe(self, on_news: Callable[[Collection[str]], None]) -> None:
        """Let a function be called with the names of jobs that have news."""
        self._on_news = on_news

    @property
    def name(self) -> str:
        """The host's name."""
        return self.config.address.name

    @property
    def silent_s(self) -> float:
        """Return for how long the host has not answered, as far as this link knows."""
        since_s = self._silent_since_s
        return 0.0 if since_s is None else self._clock() - since_s

    def _note_silence(self) -> None:
        if self._silent_since_s is None:
            self._silent_since_s = self._clock()

    def _news(self, names: Collection[str]) -> None:
        self._on_news(names)

    def ask(self, do: str, **content: object) -> JsonValue:
        """Ask the agent, and wait for its answer; a host that gives none in time does not answer any more.

        Raises:
            BackendUnavailableError: The host cannot be reached, or does not answer any more.
            BackendError: The agent refuses.
        """
        connection = self.connection()
        try:
            return connection.ask({"do": do, **content}, agent_connection.patience_s(do, content))
        except LinkLostError as error:
            raise self.lost(connection, error) from error

    def start(self, job: str, bundle: str, **content: object) -> bool:
        """Have the agent start a job and push it from its beginning on; errors as `ask`.

        Returns:
            False where the bundle is gone from the host; it is sent again the next time.
        """
        self.connection().pushed.expect(job, dict.fromkeys(wire.STREAMS, 0))
        is_started = bool(self.ask("start", job=job, bundle=bundle, **content))
        if not is_started:
            self.sent.forget(bundle)
        return is_started

    def greeting(self) -> JsonObject:
        """Return the agent's first message: versions, hostname, boot."""
        return self.connection().greeting

    def prepare_to_send(self) -> None:
        """Begin the program that sending needs there; errors as `ask`."""
        connection = self.connection()
        try:
            connection.folders.prepare()
        except LinkLostError as error:
            raise self.lost(connection, error) from error

    def send_folder(
        self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None
    ) -> str:
        """Send a folder, unless it is there, and return its path on the host; errors as `ask`."""
        connection = self.connection()
        try:
            return connection.folders.send(folder, root, kind, progress)
        except LinkLostError as error:
            raise self.lost(connection, error) from error

    def receive_file(self, job: str, path: str, part: IO[bytes]) -> None:
        """Complete a part of a file of a job, on a channel of its own; errors as `ask`, and as `RemoteFile.receive`."""
        code, directory = cast("list[str]", self.ask("locate", job=job))
        connection = self.connection()
        try:
            file = RemoteFile(self.name, code, directory, path)
            file.receive(connection.transport, self.config.python, part, connection.note_transfer)
        except LinkLostError as error:
            raise self.lost(connection, error) from error

    def connection(self) -> AgentConnection:
        """Return the connection, and wait for the first attempt only.

        A host known not to answer is not waited for.

        Raises:
            BackendUnavailableError: The host cannot be reached, or does not answer any more.
        """
        with self._lock:
            if self._connection is not None and self._connection.loss is None:
                return self._connection
            failure = self._failure
            if self._attempt is None:
                if failure is not None and self._clock() < self._retry_at_s:
                    raise failure
                self._attempt = Future()
                threading.Thread(target=self._connect, args=(self._attempt,), daemon=True).start()
            attempt = self._attempt
        if failure is not None:
            raise failure
        try:
            return attempt.result(_CONNECT_S)
        except TimeoutError:
            raise no_answer(self.name, _CONNECT_S) from None

    def connection_if_made(self) -> AgentConnection | None:
        """Return the connection without waiting, or None when none was ever tried.

        It raises the errors of `connection`.
        """
        with self._lock:
            connection = self._connection
            is_new = connection is None and self._failure is None
        if connection is not None and connection.loss is not None:
            raise self.lost(connection, connection.loss)
        return connection if connection is not None or is_new else self.connection()

    def _connect(self, attempt: Future[AgentConnection]) -> None:
        try:
            connection = AgentConnection(self.config, self._news)
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt may have waiters
            attempt.set_exception(self._failed(error))
            return
        with self._lock:
            self._attempt = None
            self._failure = None
            self._pause_s = 0.0
            self._lost_at_s = 0.0
            self._silent_since_s = None
            self._connection = connection
        attempt.set_result(connection)
        if self._closed.is_set():
            connection.close()
        self._keep_asking(connection)

    def _failed(self, error: Exception) -> Exception:
        with self._lock:
            self._attempt = None
            self._note_silence()
            self._postpone()
            if not isinstance(error, AutotrainError):
                error = BackendUnavailableError(f"{self.name} cannot be reached: {error!r}.", "A host that answers.")
            self._failure = self._explained(error)
            return self._failure

    def _keep_asking(self, connection: AgentConnection) -> None:
        """Send heartbeats: an agent ends after some time without a request, and one that answers none is given up."""
        while not self._closed.wait(self.config.heartbeat_s) and connection.loss is None:
            try:
                if unread := connection.pushed.forget_unread():
                    connection.tell({"do": "unsubscribe", "jobs": unread})
                connection.tell({"do": "ping"})
            except LinkLostError:
                return

    def _postpone(self) -> None:
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _MOST_PAUSE_S)
        self._retry_at_s = self._clock() + self._pause_s

    def lost(self, connection: AgentConnection, error: LinkLostError) -> LinkLostError:
        """Note that a connection is lost; return the error to raise, with the time since the host is silent."""
        with self._lock:
            if self._connection is connection:
                self._connection = None
                self._note_silence()
                self._lost_at_s = time.time()
                self._retry_at_s = 0.0
                self._failure = self._explained(error)
                self.sent.forget_all()  # a host that comes back may have lost its disk
            failure = self._failure
        connection.close()
        return LinkLostError(failure.found, failure.expected, failure.action) if failure is not None else error

    def _explained(self, error: AutotrainError) -> BackendUnavailableError:
        """Return the same error, with the time since when the host does not answer, where it answered before."""
        if not self._lost_at_s:
            kind = type(error) if isinstance(error, BackendUnavailableError) else BackendUnavailableError
            return kind(error.found, error.expected, error.action)
        since = time.strftime("%H:%M:%S", time.localtime(self._lost_at_s))
        return LinkLostError(
            f"{self.name} does not answer since {since}; trials go on there. ({error.found})",
            error.expected,
            "The link is tried again.",
        )

    def close(self) -> None:
        """Give up the connection; the trials on the host go on."""
        self._closed.set()
        with self._lock:
            connection = self._connection
            self._connection = None
        if connection is not None:
            connection.close()


class HostDirectory:
    """The directory of a job on a host; what raises is as `HostLink.ask`.

    Args:
        link: The host.
        job: The name of the job there.
    """

    def __init__(self, link: HostLink, job: str) -> None:
        self._link = link
        self._job = job

    def put(self, path: str, data: bytes) -> None:
        """Have the agent write the file."""
        self._link.ask("put", job=self._job, path=path, data=base64.b64encode(data).decode())

    def listing(self, path: str) -> Mapping[str, int] | int:
        """Have the agent look at each file for its size."""
        return cast("Mapping[str, int] | int", self._link.ask("list", job=self._job, path=path))

    def receive(self, path: str, size_bytes: int, part: IO[bytes]) -> None:
        """Complete a large file, which is verified; a small one comes anew, by the agent's answers.

        Bytes that a small one has grown by meanwhile are left there.
        """
        if size_bytes > _LARGE_BYTES:
            self._link.receive_file(self._job, path, part)
            return
        write_pieces(part, size_bytes, lambda offset: self._piece(path, offset))

    def _piece(self, path: str, offset: int) -> bytes:
        return base64.b64decode(cast("str", self._link.ask("get", job=self._job, path=path, offset=offset)))
