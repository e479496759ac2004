"""The addresses and ports where the ranks of one trial find each other."""

from __future__ import annotations

_GET_INTERFACE_ADDRESS = 0x8915  # SIOCGIFADDR


def find_free(count: int, address: str = "127.0.0.1") -> list[int]:
    """Return different ports of an address that are not in use; nothing listens on them until a rank does."""
    import socket  # noqa: PLC0415 - only trials with several workers pay

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    probes = [socket.socket(family, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((address, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def own_address(peer: str) -> str:
    """Return the address that this machine has on its route to a peer, "" where there is no route; nothing is sent."""
    import socket  # noqa: PLC0415 - as above

    try:
        family, kind, protocol, _, place = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            address: str = probe.getsockname()[0]
    except OSError:
        return ""
    return "" if address.startswith("127.") or address == "::1" else address


def endpoint(address: str, port: int) -> str:
    """Return an address and a port as one text."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def interface_of(address: str) -> str:
    """Return the name of the network interface that has an IPv4 address; "" where that cannot be told."""
    import fcntl  # noqa: PLC0415 - only trials on several hosts pay
    import socket  # noqa: PLC0415 - as above

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe.fileno(), _GET_INTERFACE_ADDRESS, name.encode().ljust(256, b"\0"))
            except OSError:
                continue  # it has no address, or this is no Linux
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return ""
