"""The agent that holds a user's keys, as paramiko uses it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import paramiko

from jupyter_autotrain.backends.ssh.host import ResolvedHost

_ANSWER_S = 5.0
_LIST_KEYS = b"\0\0\0\1\x0b"  # a message of one byte: SSH_AGENTC_REQUEST_IDENTITIES


def agent_answers() -> bool:
    """Ask the agent for its keys: the library would wait without end for one that hangs."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(_ANSWER_S)
        agent.connect(os.environ.get("SSH_AUTH_SOCK", ""))
        agent.sendall(_LIST_KEYS)
        return bool(agent.recv(1))
    return False


@contextlib.contextmanager
def first_key(host: ResolvedHost) -> Iterator[paramiko.PKey | None]:
    """Where the configuration allows only named keys: the first of them that the agent holds, as OpenSSH takes it."""
    if not host.only_key_files or not agent_answers():
        yield None
        return
    named: set[str] = set()
    for file in host.public_key_files:
        named.update(Path(file).read_text(encoding="utf-8", errors="replace").split())
    with contextlib.closing(paramiko.Agent()) as agent:
        yield next((key for key in agent.get_keys() if key.get_base64() in named), None)


@contextlib.contextmanager
def at_socket(path: str) -> Iterator[None]:
    """Let paramiko find the agent that the configuration names; it looks only at the environment."""
    if path in {"", "SSH_AUTH_SOCK"}:
        yield
        return
    before = os.environ.get("SSH_AUTH_SOCK")
    os.environ["SSH_AUTH_SOCK"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSH_AUTH_SOCK"]
        else:
            os.environ["SSH_AUTH_SOCK"] = before
