"""A connection made by the OpenSSH program: hardware keys, Kerberos, certificates, whatever the user's `ssh` can do.

One master holds the connection and each command is a small process that shares it. The user's own
ControlMaster is reused where there is one, as after a login with a second factor.

The program is given options that never wait for an answer, and says a host's key and why it did not connect.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from jupyter_autotrain.backends.ssh import host_keys
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.host import ResolvedHost, resolve
from jupyter_autotrain.backends.ssh.transport import (
    CONNECT_S,
    KEEPALIVE_S,
    MOST_CHANNELS,
    SILENCE_S,
    HostKey,
    take_slot,
)
from jupyter_autotrain.backends.transfer.channels import ProcessChannel
from jupyter_autotrain.errors import BackendUnavailableError

SAFE = (
    "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", f"ConnectTimeout={int(CONNECT_S)}",
    "-o", f"ServerAliveInterval={KEEPALIVE_S}", "-o", f"ServerAliveCountMax={SILENCE_S - 1}",
    "-o", "UpdateHostKeys=no", "-o", "ForwardX11=no", "-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes",
    "-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none", "-T",
)  # fmt: skip
_LOOK_S = 4 * CONNECT_S
_LOGGING_IN = re.compile(r"Authenticating to (\S+):(\d+) as ")
_FINGERPRINT = re.compile(r"Server host key: (\S+) (SHA256:\S+)")
_LINK_LOST = 255  # the exit code of `ssh` itself
_MASTER_S = 4 * CONNECT_S  # to connect, through hosts in between
_MASTER_ANSWER_S = 5.0  # it is a process of this machine
_UNUSED_S = 30  # a master whose owner was killed ends itself after this
# Without its master, `ssh` would connect by itself: slowly, without our knowing, and even after a lost connection.
_ONLY_SHARED = (
    "-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes", "-o", "RemoteCommand=none", "-T",
)  # fmt: skip


def host_key(address: HostAddress) -> HostKey:
    """Return the key that a host shows now, trusted or not; hosts in between must be trusted.

    Raises:
        BackendUnavailableError: It cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix="autotrain-ssh-") as folder:
        shown = Path(folder) / "known_hosts"
        only_look = (
            "-o", f"UserKnownHostsFile={shown}", "-o", "GlobalKnownHostsFile=none", "-o", "HashKnownHosts=no",
            "-o", "StrictHostKeyChecking=accept-new", "-o", "PreferredAuthentications=none", "-o", "ControlPath=none",
        )  # fmt: skip
        argv = ["ssh", *address.ssh_options(), *only_look, *SAFE, "-v", "--", address.name, "true"]
        # Without a terminal: there the `ssh` that connects to a host in between would ask whether to trust it.
        try:
            asked = subprocess.run(
                argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, start_new_session=True,
                timeout=_LOOK_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:  # a host in between is silent
            raise explain(address, f"no answer within {_LOOK_S:g} s") from None
        if not shown.exists():
            raise explain(address, asked.stderr)
        _, key_type, base64 = shown.read_text(encoding="ascii").splitlines()[0].split()[:3]
        return HostKey(key_type, base64)


def _unknown_one(address: HostAddress, said: str) -> ResolvedHost:
    """Return the host whose key is not known: this one, or one in between."""
    host = resolve(address)
    between = [resolve(jump_address(jump, address.config_file, address.profile)) for jump in host.jumps]
    *_, (hostname, port) = _LOGGING_IN.findall(said) or [("", "")]
    return next((hop for hop in between if (hop.hostname, str(hop.port)) == (hostname, port)), host)


def explain(address: HostAddress, said: str) -> BackendUnavailableError:
    """Return the error that says why `ssh` did not connect, from what it printed with `-v`."""
    shown = _FINGERPRINT.findall(said)
    key_type, fingerprint = shown[-1] if shown else ("", "")
    if "HOST IDENTIFICATION HAS CHANGED" in said:
        return host_keys.changed(resolve(address), key_type, fingerprint)
    if "marked as revoked" in said or "REVOKED HOST KEY" in said:
        return host_keys.revoked(address.name, key_type, fingerprint)
    if "host key is known for" in said or "Host key verification failed" in said:
        return host_keys.unknown(_unknown_one(address, said), key_type, fingerprint)
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("debug", "OpenSSH_"))]
    why = lines[-1].strip() if lines else "it gave no reason"
    if "Permission denied" in said:
        return BackendUnavailableError(
            f"{address.name} does not let you in: {why}",
            "A key, ticket or shared master that it accepts without a question.",
            f"Run `ssh {address.name} true` in a terminal until it asks for nothing.",
        )
    return BackendUnavailableError(
        f"{address.name} cannot be reached: {why}",
        "A host that answers.",
        f"Check its name and the network: `ssh {address.name} true`.",
    )


class OpenSshTransport:
    """A connection to one host.

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
            raise explain(self._address, said)

    def _argv(self) -> list[str]:
        argv = ["ssh", *self._address.ssh_options()]
        if self._has_own_master:
            argv += [*SAFE, "-o", f"ControlPath={self._folder / 'master'}"]
        return argv

    def start(self, command: str) -> OpenSshChannel:
        """Do the same as `Transport.start`."""
        take_slot(self._slots, self.is_alive, self.name)
        try:
            return OpenSshChannel([*self._argv(), *_ONLY_SHARED, "--", self.name, command], self)
        except BaseException:
            self._slots.release()
            raise

    def free_slot(self) -> None:
        """Take back the slot of a channel that was closed."""
        self._slots.release()

    def is_alive(self) -> bool:
        """Do the same as `Transport.is_alive`."""
        return _is_told(self._argv(), "check", self.name)

    def close(self) -> None:
        """Do the same as `Transport.close`; a master of the user's goes on."""
        if self._has_own_master:
            _is_told(self._argv(), "exit", self.name)
        shutil.rmtree(self._folder, ignore_errors=True)


class OpenSshChannel(ProcessChannel):
    """A command on a host: one `ssh` process that shares the master's connection.

    Args:
        argv: The process.
        owner: The connection, which counts its channels.
    """

    def __init__(self, argv: Sequence[str], owner: OpenSshTransport) -> None:
        super().__init__(argv, owner.name, _LINK_LOST)
        self._free = owner.free_slot

    def close(self) -> None:
        """Do the same as `Channel.close`."""
        super().close()
        free, self._free = self._free, lambda: None
        free()


def _is_told(argv: list[str], what: str, name: str) -> bool:
    """Tell a master something (`ssh -O`); return False when there is none, or it does not answer."""
    command = [*argv, "-O", what, "--", name]
    try:
        told = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_MASTER_ANSWER_S
        )
    except subprocess.TimeoutExpired:
        return False
    return told.returncode == 0
