"""The network of a pod: a namespace with one address on the lab's bridge."""

from __future__ import annotations

import os
import subprocess

from tests.labs.kubernetes.nodes.runtime import syscalls

GATEWAY = "10.80.0.1"  # the address of the lab itself
_HERE = "/proc/self/ns/net"
_IN_THE_POD = """link set lo up
addr add {address}/16 dev eth0
link set eth0 up
route add default via {gateway}
"""


class PodNetworks:
    """The networks of the pods of a node; each is kept alive by a descriptor."""

    def __init__(self) -> None:
        self._own = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
        self._networks: dict[str, int] = {}

    def make(self, pod: str, address: str) -> None:
        """Make the network of a pod."""
        if pod in self._networks:
            return
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            network = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
            self._disable_ipv6()
        finally:
            syscalls.enter(self._own, syscalls.CLONE_NEWNET)
        self._networks[pod] = network
        port = "pod" + "-".join(address.split(".")[2:])
        end = f"netns /proc/{os.getpid()}/fd/{network}"
        _ip(f"link add {port} master br0 up type veth peer name eth0 {end}\n")
        syscalls.enter(network, syscalls.CLONE_NEWNET)
        try:
            _ip(_IN_THE_POD.format(address=address, gateway=GATEWAY))
        finally:
            syscalls.enter(self._own, syscalls.CLONE_NEWNET)

    def _disable_ipv6(self) -> None:
        for scope in ("all", "default"):
            path = f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"
            if os.path.exists(path):
                with open(path, "w") as file:
                    file.write("1")

    def enter(self, pod: str) -> None:
        """Put the calling process into the network of a pod."""
        syscalls.enter(self._networks[pod], syscalls.CLONE_NEWNET)

    def remove(self, pod: str) -> None:
        """Let the network of a pod go; it ends with its last process."""
        found = self._networks.pop(pod, None)
        if found is not None:
            os.close(found)


def _ip(commands: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True, capture_output=True)
