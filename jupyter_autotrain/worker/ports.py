"""The rendezvous port of the workers of one trial (`MASTER_PORT`), on the loopback interface."""

from __future__ import annotations


def find_free() -> int:
    """A port that is not in use; nothing listens on it until a worker does."""
    import socket  # noqa: PLC0415 - only trials with several workers pay

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
