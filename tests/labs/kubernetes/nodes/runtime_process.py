"""The process that runs a node's containers, as the kubelet holds it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.labs import namespaces
from tests.labs.kubernetes.nodes.runtime import container
from tests.labs.kubernetes.objects.values import Json

_BEGIN = """
import sys
sys.path.insert(0, {folder!r})
from tests.labs.kubernetes.nodes.runtime.main import main
main()
"""


class RuntimeProcess:
    """The first process of a node's namespaces; it ends, with all that runs in them, when this process does.

    Args:
        network_pid: A process in the network that the node is on.
        settings: Of the node.
        heard: Called with each event, in a thread of its own; with `{"event": "ended"}` at the end.
    """

    def __init__(self, network_pid: int, settings: container.NodeSettings, heard: Callable[[Json], None]) -> None:
        project = Path(__file__).parents[4]
        prefix = ("nsenter", "--target", str(network_pid), "--net", "unshare")
        kinds = ("--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child")
        code = _BEGIN.format(folder=str(project))
        self._process = subprocess.Popen(
            (*prefix, *kinds, sys.executable, "-I", "-S", "-B", "-c", code, json.dumps(settings)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        if "ready" not in first:
            namespaces.end(self._process)
            raise RuntimeError(f"A node of the cluster did not start: it said {first!r}.")
        self._heard = heard
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="node-events", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The first process of the node, by its pid on this machine."""
        outer = self._process.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._heard(json.loads(line))
        self._heard({"event": "ended"})

    def _send(self, **request: object) -> None:
        assert self._process.stdin is not None
        with self._sending:
            try:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                return  # the node has failed: nothing runs on it any more

    def start(self, request: container.StartRequest) -> None:
        """Start a container."""
        self._send(do="start", container=request)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the first process of a container."""
        self._send(do="signal", id=name, signal=number)

    def forget(self, name: str) -> None:
        """Remove what a container that has ended wrote."""
        self._send(do="forget", id=name)

    def remove_network(self, pod: str) -> None:
        """Let the network of a pod go."""
        self._send(do="remove_network", pod=pod)

    def end(self) -> None:
        """End the node and all that runs on it."""
        self._process.kill()
        self._process.wait(timeout=240)
        self._reader.join(timeout=30)
        with self._sending:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):  # a last request that nobody reads
                        pipe.close()
