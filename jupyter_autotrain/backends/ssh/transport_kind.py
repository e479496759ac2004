"""The transports that a profile can name."""

from __future__ import annotations

from enum import StrEnum


class TransportKind(StrEnum):
    """What makes the connections."""

    PARAMIKO = "paramiko"
    OPENSSH = "openssh"
