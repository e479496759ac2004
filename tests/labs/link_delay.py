"""A delay on the link to a host of the SSH lab, for kernels without `netem`: two tap devices, and frames held between.

    python -m tests.labs.link_delay CONTROLLER_PID HOST_PID ADDRESS DELAY_S

It prints `ready`, and ends with its standard input; the devices are gone with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.labs import namespaces

if TYPE_CHECKING:
    from tests.labs.ssh_lab import LabHost

_SET_INTERFACE = 0x400454CA  # TUNSETIFF
_TAP_WITHOUT_HEADER = 0x1002  # IFF_TAP | IFF_NO_PI
_SET_TIMER_SLACK = 29  # prctl: the kernel wakes this process as exactly as it can
_MOST_FRAME_BYTES = 65_536
_MOST_AT_ONCE = 64
_NAME = "delay"
_STDIN = 0


@contextlib.contextmanager
def delayed(controller_pid: int, host: LabHost, delay_s: float) -> Iterator[None]:
    """Delay everything to and from a host, each way by so much."""
    ends = (str(controller_pid), str(host.first_pid), host.address)
    relay = namespaces.begin((sys.executable, "-m", "tests.labs.link_delay", *ends, str(delay_s)))
    try:
        yield
    finally:
        namespaces.end(relay)
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")


def main(controller_pid: int, host_pid: int, address: str, delay_s: float) -> None:
    """Take the place of the host's own link, and relay frames until standard input ends."""
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
    here = _tap(controller_pid, ("ip link set NAME master br0 up",))
    moved = ("ip addr flush dev eth0", "ip link set eth0 down", f"ip addr add {address}/24 dev NAME")
    there = _tap(host_pid, (*moved, "ip link set NAME up"))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _relay(here, there, delay_s)


def _tap(pid: int, commands: tuple[str, ...]) -> int:
    """Make a tap device in the network of a process."""
    with namespaces.inside_network(pid):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        name = f"{_NAME}{os.getpid() % 10_000}"
        fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH", name.encode(), _TAP_WITHOUT_HEADER))
        for command in commands:
            subprocess.run(command.replace("NAME", name).split(), check=True)
    return device


def _relay(here: int, there: int, delay_s: float) -> None:
    other = {here: there, there: here}
    held: dict[int, deque[tuple[float, bytes]]] = {here: deque(), there: deque()}
    while True:
        for device, frames in held.items():
            _release(frames, other[device])
        due_s = min((frames[0][0] for frames in held.values() if frames), default=None)
        pause_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        ready = select.select([here, there, _STDIN], [], [], pause_s)[0]  # unlike epoll in microseconds
        if _STDIN in ready:
            return
        for device in ready:
            _hold(device, held[device], delay_s)


def _release(frames: deque[tuple[float, bytes]], device: int) -> None:
    now_s = time.monotonic()
    while frames and frames[0][0] <= now_s:
        with contextlib.suppress(BlockingIOError, OSError):  # as on a real link, what finds no room is lost
            os.write(device, frames[0][1])
        frames.popleft()


def _hold(device: int, frames: deque[tuple[float, bytes]], delay_s: float) -> None:
    for _ in range(_MOST_AT_ONCE):
        try:
            frame = os.read(device, _MOST_FRAME_BYTES)
        except BlockingIOError:
            return
        frames.append((time.monotonic() + delay_s, frame))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
