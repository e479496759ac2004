"""A connection made by the OpenSSH program: hardware keys, Kerberos, certificates, whatever the user's `ssh` can do.

One master holds the connection and each command is a small process that shares it. The user's own
ControlMaster is reused where there is one, as after a login with a second factor.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO

from jupyter_autotrain.backends.ssh import openssh_probe
from jupyter_autotrain.backends.ssh.address import HostAddress
from jupyter_autotrain.backends.ssh.transport import (
    CONNECT_S,
    MOST_BYTES,
    MOST_CHANNELS,
    PATIENCE_S,
    Deadline,
    LinkLostError,
    TailBuffer,
    lost,
    no_answer,
    take_slot,
)
from jupyter_autotrain.errors import BackendUnavailableError

_LINK_LOST = 255  # the exit code of `ssh` itself
_MASTER_S = 4 * CONNECT_S  # to connect, through hosts in between
_MASTER_ANSWER_S = 5.0  # it is a process of this machine
_UNUSED_S = 30  # a master whose owner was killed ends itself after this
# Without its master, `ssh` would connect by itself: slowly, without our knowing, and even after a lost connection.
_ONLY_SHARED = (
    "-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes", "-o", "RemoteCommand=none", "-T",
)  # fmt: skip


class OpenSshTransport:
    """A connection to one host.

    Args:
        address: The host.

    Raises:
        BackendUnavailableError: There is no `ssh`, or the host cannot be reached, is not trusted, or does not let
            the user in.
    """

    def __init__(self, address: HostAddress) -> None:
        if shutil.which("ssh") is None:
            raise BackendUnavailableError(
                "There is no `ssh` program here.", "", "Install the OpenSSH client, or say `transport: paramiko`."
            )
        self._address = address
        self._slots = threading.BoundedSemaphore(MOST_CHANNELS)
        self._folder = Path(tempfile.mkdtemp(prefix="autotrain-ssh-"))
        self._has_own_master = not self._shares_users_master()
        if self._has_own_master:
            try:
                self._start_master()
            except BaseException:
                shutil.rmtree(self._folder, ignore_errors=True)
                raise

    @property
    def name(self) -> str:
        """The host's name."""
        return self._address.name

    def _shares_users_master(self) -> bool:
        return _is_told(["ssh", *self._address.ssh_options()], "check", self.name)

    def _start_master(self) -> None:
        """Begin a master that goes to the background once authenticated, and holds none of our pipes there."""
        argv = [*self._argv(), "-M", "-N", "-f", "-o", f"ControlPersist={_UNUSED_S}", "-v", "--", self.name]
        with (self._folder / "messages").open("w+b") as messages:
            try:
                begun = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages, check=False,
                    timeout=_MASTER_S, start_new_session=True,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise BackendUnavailableError(
                    f"{self.name} has not let you in within {_MASTER_S:.0f} s.",
                    "A host that answers, and hosts in between that ask nothing.",
                    f"Run `ssh {self.name} true` in a terminal until it asks for nothing.",
                ) from None
            messages.seek(0)
            said = messages.read().decode(errors="replace")
        if begun.returncode != 0:
            raise openssh_probe.explain(self._address, said)

    def _argv(self) -> list[str]:
        argv = ["ssh", *self._address.ssh_options()]
        if self._has_own_master:
            argv += [*openssh_probe.SAFE, "-o", f"ControlPath={self._folder / 'master'}"]
        return argv

    def start(self, command: str) -> OpenSshChannel:
        """As `Transport.start`."""
        take_slot(self._slots, self.is_alive, self.name)
        try:
            process = subprocess.Popen(
                [*self._argv(), *_ONLY_SHARED, "--", self.name, command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._slots.release()
            raise
        return OpenSshChannel(process, self)

    def closed(self) -> None:
        """A channel is given back."""
        self._slots.release()

    def is_alive(self) -> bool:
        """As `Transport.is_alive`."""
        return _is_told(self._argv(), "check", self.name)

    def close(self) -> None:
        """As `Transport.close`; a master of the user's goes on."""
        if self._has_own_master:
            _is_told(self._argv(), "exit", self.name)
        shutil.rmtree(self._folder, ignore_errors=True)


class OpenSshChannel:
    """A command on a host: one `ssh` process that shares the master's connection."""

    def __init__(self, process: subprocess.Popen[bytes], owner: OpenSshTransport) -> None:
        self._process = process
        os.set_blocking(_pipe(process.stdin).fileno(), False)
        self._owner = owner
        self._tail = TailBuffer()
        self._is_closed = False
        self._reader = threading.Thread(target=self._read_stderr, name="ssh-stderr", daemon=True)
        self._reader.start()

    def _read_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := _pipe(self._process.stderr).read(MOST_BYTES):
                self._tail.add(piece)

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """As `Channel.send`."""
        view = memoryview(data)
        stdin = _pipe(self._process.stdin)
        try:
            while view:
                self._wait_for(stdin, select.POLLOUT, within_s)
                view = view[stdin.write(view) or 0 :]
        except BrokenPipeError as error:
            if self._ended(Deadline(within_s)) == _LINK_LOST:
                raise self._lost() from error
            raise

    def _wait_for(self, stream: IO[bytes], event: int, within_s: float) -> None:
        """Wait until a pipe can be read or written, or has been closed at its other end."""
        poll = select.poll()
        poll.register(stream, event)
        if not poll.poll(1000 * within_s):
            raise no_answer(self._owner.name, within_s)

    def _ended(self, deadline: Deadline) -> int:
        try:
            return self._process.wait(deadline.left_s)
        except subprocess.TimeoutExpired:
            raise no_answer(self._owner.name, deadline.within_s) from None

    def finish(self) -> None:
        """As `Channel.finish`."""
        _pipe(self._process.stdin).close()

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """As `Channel.receive`."""
        deadline = Deadline(within_s)
        self._wait_for(_pipe(self._process.stdout), select.POLLIN, within_s)
        piece = _pipe(self._process.stdout).read(MOST_BYTES)
        if not piece and self._ended(deadline) == _LINK_LOST:
            raise self._lost()
        return piece

    def _lost(self) -> LinkLostError:
        last = self.stderr().decode(errors="replace").strip().splitlines()
        return lost(self._owner.name, f" ({last[-1][:200]})" if last else "")

    def stderr(self) -> bytes:
        """As `Channel.stderr`."""
        if self._process.poll() is not None:
            self._reader.join(1.0)
        return self._tail.bytes()

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """As `Channel.exit_code`."""
        code = self._ended(Deadline(within_s))
        if code == _LINK_LOST:
            raise self._lost()
        return code

    def close(self) -> None:
        """As `Channel.close`."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_MASTER_ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            _pipe(stream).close()
        self._owner.closed()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _is_told(argv: list[str], what: str, name: str) -> bool:
    """Tell a master something (`ssh -O`); False when there is none, or it does not answer."""
    command = [*argv, "-O", what, "--", name]
    try:
        told = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_MASTER_ANSWER_S
        )
    except subprocess.TimeoutExpired:
        return False
    return told.returncode == 0
