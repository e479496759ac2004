"""A connection made by the library paramiko: no process of its own, two milliseconds per command."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

import paramiko

from jupyter_autotrain.backends.ssh import paramiko_connecting
from jupyter_autotrain.backends.ssh.address import HostAddress
from jupyter_autotrain.backends.ssh.transport import MOST_CHANNELS, take_slot
from jupyter_autotrain.backends.transfer.channels import MOST_BYTES, PATIENCE_S, Deadline, TailBuffer, lost, no_answer
from jupyter_autotrain.errors import BackendError

_TRY_AGAIN_S = 10.0
_FIRST_PAUSE_S = 0.05
_OPEN_S = 15.0
_TICK_S = 0.5  # the library has one time limit for what a channel sends and receives: deadlines are counted here
_SILENCE = logging.NullHandler()  # adding it again changes nothing


class ParamikoTransport:
    """A connection to one host.

    Raises:
        BackendUnavailableError: It cannot be reached, is not trusted, or does not let the user in.
    """

    def __init__(self, address: HostAddress) -> None:
        logging.getLogger("paramiko").addHandler(_SILENCE)  # else a lost link is printed below the user's cell
        self._name = address.name
        self._clients = paramiko_connecting.connect(address)
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)

    def start(self, command: str) -> ParamikoChannel:
        """Do the same as `Transport.start`, and wait while all channels are in use."""
        take_slot(self._slots, self.is_alive, self._name)
        try:
            channel = self._open()
            with _closed_after(_OPEN_S, channel):
                channel.exec_command(command.encode())
        except BaseException as error:
            self._slots.release()
            if isinstance(error, EOFError) or not self.is_alive():
                raise lost(self._name) from error
            raise
        return ParamikoChannel(channel, self)

    def _open(self) -> paramiko.Channel:
        """Open a channel; a server that has too many of them may have fewer a moment later."""
        deadline = time.monotonic() + _TRY_AGAIN_S
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return self._connection().open_session(timeout=_OPEN_S)
            except paramiko.ChannelException as error:
                if time.monotonic() > deadline:
                    raise BackendError(
                        f"{self._name} allows no more channels: {error.text}",
                        "A server whose MaxSessions is 10, as it is by default, or more.",
                        "Ask who runs it, or end other connections.",
                    ) from error
            except paramiko.SSHException as error:
                raise lost(self._name) from error
            time.sleep(pause_s)
            pause_s *= 2

    def _connection(self) -> paramiko.Transport:
        transport = self._clients[-1].get_transport()
        if transport is None or not transport.is_active():
            raise lost(self._name)
        return transport

    def is_alive(self) -> bool:
        """Do the same as `Transport.is_alive`."""
        transport = self._clients[-1].get_transport()
        return transport is not None and bool(transport.is_active())

    def closed(self) -> None:
        """Take back the slot of a channel that was closed."""
        self._slots.release()

    @property
    def name(self) -> str:
        """The host's name."""
        return self._name

    def close(self) -> None:
        """Do the same as `Transport.close`."""
        paramiko_connecting.close(self._clients)


class ParamikoChannel:
    """A command on a host."""

    def __init__(self, channel: paramiko.Channel, owner: ParamikoTransport) -> None:
        self._channel = channel
        self._channel.settimeout(_TICK_S)
        self._owner = owner
        self._tail = TailBuffer()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read_stderr, name="ssh-stderr", daemon=True)
        self._reader.start()

    def _read_stderr(self) -> None:
        while True:
            try:
                piece = self._channel.recv_stderr(MOST_BYTES)
            except TimeoutError:
                continue
            if not piece:
                return
            self._tail.add(piece)

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """Do the same as `Channel.send`."""
        rest = memoryview(data)  # it cuts off what it has sent: of bytes that is a copy
        deadline = Deadline(within_s)
        while rest:
            try:
                rest = rest[self._channel.send(rest) :]
                deadline = Deadline(within_s)
            except TimeoutError:
                self._check_deadline(deadline)
            except EOFError as error:  # the library's word for a connection that takes no more
                raise lost(self._owner.name) from error
            except (OSError, paramiko.SSHException) as error:
                self._check_link(error)
                raise BrokenPipeError(f"The command on {self._owner.name} has closed its standard input.") from error

    def _check_deadline(self, deadline: Deadline) -> None:
        if not deadline.left_s:
            raise no_answer(self._owner.name, deadline.within_s)

    def finish(self) -> None:
        """Do the same as `Channel.finish`."""
        try:
            self._channel.shutdown_write()
        except (OSError, EOFError) as error:
            self._check_link(error)

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """Do the same as `Channel.receive`."""
        deadline = Deadline(within_s)
        while True:
            try:
                piece: bytes = self._channel.recv(MOST_BYTES)
            except TimeoutError:
                self._check_deadline(deadline)
            else:
                if not piece:
                    self._check_link(None)
                return piece

    def _check_link(self, error: BaseException | None) -> None:
        """Refuse an output that has ended without the server's message.

        The server ends a command's output by a message of its own; without it the connection has ended.
        """
        if not self._channel.eof_received and self._channel.exit_status == -1:
            raise lost(self._owner.name) from error

    def stderr(self) -> bytes:
        """Do the same as `Channel.stderr`."""
        if self._channel.exit_status_ready():
            self._reader.join(1.0)
        return self._tail.bytes()

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Do the same as `Channel.exit_code`."""
        if not self._channel.status_event.wait(within_s):
            raise no_answer(self._owner.name, within_s)
        code: int = self._channel.exit_status
        if code == -1:  # of a signal paramiko tells no number
            self._check_link(None)
        return code

    def close(self) -> None:
        """Do the same as `Channel.close`."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError, EOFError):  # the connection is gone, and the channel with it
            self._channel.close()
        self._owner.closed()


@contextlib.contextmanager
def _closed_after(within_s: float, channel: paramiko.Channel) -> Iterator[None]:
    """Close a channel after a while, which ends all waits for it: the library waits for some answers without end."""
    timer = threading.Timer(within_s, channel.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
