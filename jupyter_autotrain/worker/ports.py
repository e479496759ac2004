"""Addresses and ports where the ranks of one trial find each other."""

from __future__ import annotations


def find_free(count: int, address: str = "127.0.0.1") -> list[int]:
    """Different ports of an address that are not in use; nothing listens on them until a rank does."""
    import socket  # noqa: PLC0415 - only trials with several workers pay

    probes = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((address, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def own_address(peer: str) -> str:
    """The address that this machine has on its route to a peer, "" where there is no route; nothing is sent."""
    import socket  # noqa: PLC0415 - as above

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((peer, 9))
            address: str = probe.getsockname()[0]
    except OSError:
        return ""
    return "" if address.startswith("127.") else address
