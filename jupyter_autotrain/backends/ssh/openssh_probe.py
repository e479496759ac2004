"""Asking the OpenSSH program: its options that never wait for an answer, a host's key, and why it did not connect."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from jupyter_autotrain.backends.ssh import host_keys
from jupyter_autotrain.backends.ssh.address import HostAddress, jump_address
from jupyter_autotrain.backends.ssh.host import ResolvedHost, resolve
from jupyter_autotrain.backends.ssh.transport import CONNECT_S, KEEPALIVE_S, SILENCE_S, HostKey
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


def host_key(address: HostAddress) -> HostKey:
    """The key that a host shows now, whether it is trusted or not; hosts in between must be trusted.

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
    """The host whose key is not known: this one, or one in between."""
    host = resolve(address)
    between = [resolve(jump_address(jump, address.config_file, address.profile)) for jump in host.jumps]
    *_, (hostname, port) = _LOGGING_IN.findall(said) or [("", "")]
    return next((hop for hop in between if (hop.hostname, str(hop.port)) == (hostname, port)), host)


def explain(address: HostAddress, said: str) -> BackendUnavailableError:
    """Why `ssh` did not connect, from what it printed with `-v`."""
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
