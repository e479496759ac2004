"""One run of a container, as its node's runtime starts it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import TypedDict

from tests.labs.kubernetes.nodes.runtime import root, syscalls
from tests.labs.kubernetes.nodes.runtime.log_file import LogFile
from tests.labs.kubernetes.nodes.runtime.network import PodNetworks


class StartRequest(TypedDict):
    """Request to start a container.

    `id` is unique on the node; `pod` the pod's uid; `user` and `group` are numbers; 0 bytes of memory are no limit.
    Above it `kills_all` ends all processes, as version 2 of control groups does; else only the largest one is ended.
    """

    id: str
    pod: str
    address: str
    hostname: str
    argv: list[str]
    environment: dict[str, str]
    folder: str
    mounts: list[root.Mount]
    user: int
    group: int
    read_only: bool
    log: str
    log_limit_bytes: int
    memory_bytes: int
    kills_all: bool
    watch_storage: bool


class NodeSettings(TypedDict):
    """Settings of all containers of a node: see `root.make_root`."""

    scratch: str
    hidden: list[str]
    shown: list[str]
    empty: list[str]


class Container:
    """A running container: its first process, its output, its log.

    Raises:
        RuntimeError: It could not be started; the message is the system's.
    """

    def __init__(self, request: StartRequest, settings: NodeSettings, networks: PodNetworks, own_pids: int) -> None:
        self.id = request["id"]
        self.memory_bytes = request["memory_bytes"]
        self._kills_all = request["kills_all"]
        self.watch_storage = request["watch_storage"]
        self.out_of_memory = False
        self._upper = f"{settings['scratch']}/{self.id}/upper"
        ends, starts = _pipes(3)
        self.outputs = {ends[0]: "stdout", ends[1]: "stderr"}
        syscalls.unshare(syscalls.CLONE_NEWPID)
        self.pid = os.fork()
        if self.pid == 0:
            _become(request, settings, networks, starts)
        syscalls.enter(own_pids, syscalls.CLONE_NEWPID)
        for descriptor in starts:
            os.close(descriptor)
        failure = _read_all(ends[2])  # until the command runs, and closes the other end
        os.close(ends[2])
        if failure:
            os.waitpid(self.pid, 0)
            self._close_outputs()
            raise RuntimeError(failure.decode())
        self.pids_namespace = os.stat(f"/proc/{self.pid}/ns/pid").st_ino
        self.pidfd = os.pidfd_open(self.pid)
        self._log = LogFile(request["log"], request["log_limit_bytes"], kept=5)

    def _close_outputs(self) -> None:
        for descriptor in self.outputs:
            os.close(descriptor)

    def drain(self, descriptor: int) -> bool:
        """Log what one of its outputs has; whether more may come."""
        data = os.read(descriptor, 1 << 16)
        if data:
            self._log.write(self.outputs[descriptor], data)
        return bool(data)

    def signal(self, number: int) -> None:
        """Send a signal to its first process."""
        with contextlib.suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self.pidfd, number)

    def watch_memory(self, used: Mapping[int, int]) -> None:
        """End what is above the limit; `used` is the resident memory of each process."""
        if sum(used.values()) <= self.memory_bytes:
            return
        self.out_of_memory = True  # told of the container when it ends, whoever was killed
        if self._kills_all:
            self.signal(signal.SIGKILL)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(max(used, key=lambda pid: used[pid]), signal.SIGKILL)

    def finish(self) -> int:
        """Take the status of the first process, which has ended, and log the rest of the output."""
        _, status = os.waitpid(self.pid, 0)
        for descriptor in self.outputs:
            rest = _read_all(descriptor)
            if rest:
                self._log.write(self.outputs[descriptor], rest)
        self._close_outputs()
        os.close(self.pidfd)
        self._log.close()
        return os.waitstatus_to_exitcode(status)

    def written_bytes(self) -> int:
        """Return how much it has written to its own file system."""
        total = 0
        for folder, _, names in os.walk(self._upper):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # it was removed just now
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
        return total


def _pipes(count: int) -> tuple[list[int], list[int]]:
    pairs = [os.pipe2(os.O_CLOEXEC) for _ in range(count)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _become(request: StartRequest, settings: NodeSettings, networks: PodNetworks, starts: list[int]) -> None:
    """In the new process: become the container, or say why not and end."""
    try:
        _enter(request, settings, networks)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(starts[0], 1)
        os.dup2(starts[1], 2)
        os.execvpe(request["argv"][0], request["argv"], request["environment"])
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as the runtime
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        os.write(starts[2], json.dumps({"type": type(error).__name__, "message": text}).encode())
    finally:
        os._exit(128)


def _enter(request: StartRequest, settings: NodeSettings, networks: PodNetworks) -> None:
    os.setsid()
    networks.enter(request["pod"])
    syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC)
    syscalls.set_hostname(request["hostname"])
    place = root.make_root(settings["scratch"], request["id"], settings["shown"], settings["empty"])
    root.mount_system(place)
    root.mount_volumes(place, request["mounts"])
    os.makedirs(place + request["folder"], exist_ok=True)
    if request["read_only"]:
        flags = syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY
        syscalls.mount(place, place, flags=syscalls.MS_BIND)
        syscalls.mount("", place, flags=flags)
    os.chroot(place)
    os.chdir(request["folder"])
    os.umask(0o022)
    if request["user"] or request["group"]:
        os.setgroups([request["group"]])
        os.setgid(request["group"])
        os.setuid(request["user"])


def memory_by_namespace() -> dict[int, dict[int, int]]:
    """Return the resident memory of each process, by their namespaces of process ids."""
    found: dict[int, dict[int, int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            namespace = os.stat(f"/proc/{name}/ns/pid").st_ino
            with open(f"/proc/{name}/statm") as file:
                pages = int(file.read().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        found.setdefault(namespace, {})[int(name)] = pages * 4096
    return found


def say(**event: object) -> None:
    """Tell the kubelet of something that happened."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
