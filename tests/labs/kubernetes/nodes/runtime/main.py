"""The runtime's loop: requests from its standard input, one JSON object a line, and what its containers do."""

from __future__ import annotations

import json
import os
import resource
import selectors
import shutil
import signal
import sys
import time
from typing import Any

from tests.labs.kubernetes.nodes.runtime import root, syscalls
from tests.labs.kubernetes.nodes.runtime.container import (
    Container,
    NodeSettings,
    StartRequest,
    memory_by_namespace,
    say,
)
from tests.labs.kubernetes.nodes.runtime.network import PodNetworks

_MEMORY_EVERY_S = 0.1
_STORAGE_EVERY_S = 0.5


class Runtime:
    """The containers of a node."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._networks = PodNetworks()
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._containers: dict[str, Container] = {}
        self._selector = selectors.DefaultSelector()
        self._text = b""
        self._storage_due = 0.0

    def run(self) -> None:
        """Serve until the standard input closes."""
        self._selector.register(0, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._timeout()):
                if key.fd == 0:
                    if not self._read_requests():
                        return
                elif key.fd in self._selector.get_map():  # it may have ended in this round
                    self._serve(key.data, key.fd)
            self._watch_memory()
            self._watch_storage()

    def _timeout(self) -> float | None:
        watched = any(found.memory_bytes or found.watch_storage for found in self._containers.values())
        return _MEMORY_EVERY_S if watched else None

    def _read_requests(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._do(json.loads(line))
        return bool(data)

    def _do(self, request: dict[str, Any]) -> None:
        found = self._containers.get(request.get("id", ""))
        if request["do"] == "start":
            self._start(request["container"])
        elif request["do"] == "signal" and found:
            found.signal(request["signal"])
        elif request["do"] == "forget":
            shutil.rmtree(f"{self._settings['scratch']}/{request['id']}", ignore_errors=True)
        elif request["do"] == "remove_network":
            self._networks.remove(request["pod"])

    def _start(self, request: StartRequest) -> None:
        try:
            self._networks.make(request["pod"], request["address"])
            container = Container(request, self._settings, self._networks, self._own_pids)
        except (OSError, RuntimeError) as error:
            say(event="failed", id=request["id"], message=str(error))
            return
        self._containers[container.id] = container
        for descriptor in (*container.outputs, container.pidfd):
            self._selector.register(descriptor, selectors.EVENT_READ, container)
        say(event="started", id=container.id, pid=container.pid)

    def _serve(self, container: Container, descriptor: int) -> None:
        if descriptor != container.pidfd:
            if not container.drain(descriptor):
                self._selector.unregister(descriptor)
            return
        for registered in (*container.outputs, container.pidfd):
            if registered in self._selector.get_map():
                self._selector.unregister(registered)
        del self._containers[container.id]
        code = container.finish()
        say(event="exited", id=container.id, code=code, out_of_memory=container.out_of_memory)

    def _watch_memory(self) -> None:
        limited = [found for found in self._containers.values() if found.memory_bytes]
        used = memory_by_namespace() if limited else {}
        for container in limited:
            container.watch_memory(used.get(container.pids_namespace, {}))

    def _watch_storage(self) -> None:
        if time.monotonic() < self._storage_due:
            return
        self._storage_due = time.monotonic() + _STORAGE_EVERY_S
        for container in self._containers.values():
            if container.watch_storage:
                say(event="storage", id=container.id, bytes=container.written_bytes())


def main() -> None:
    """Run as the first process of a node; its settings are its argument."""
    settings: NodeSettings = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scratch = settings["scratch"]
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("proc", "/proc", "proc")
    syscalls.mount("scratch", scratch, "tmpfs", data="mode=0755")
    root.make_mask(f"{scratch}/mask", settings["hidden"])
    os.makedirs(f"{scratch}/nothing")
    say(event="ready")
    Runtime(settings).run()
