"""The pod of another node than the first: it is connected to the first one. Runs in the pod, with Python 3.9."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from jupyter_autotrain.backends.kubernetes_pod import pod_part
from jupyter_autotrain.backends.kubernetes_pod.peer_link import PeerLink, connect, introduce
from jupyter_autotrain.backends.kubernetes_pod.peers import PeersError
from jupyter_autotrain.backends.kubernetes_pod.pod_part import ENDED_BECAUSE, Endpoint, StatusFile, request_end
from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import ports

_PIECE = 1 << 20


class OtherNode:
    """The pod of another node.

    Args:
        node: Its number.
        workers: How many ranks each node has.
        token: Known to the pods of the trial alone.
        first: The address of node 0.
    """

    def __init__(self, node: int, workers: int, token: str, first: str) -> None:
        self._node = node
        self._workers = workers
        self._token = token
        self._first = first
        self._link: PeerLink | None = None
        self._sent_bytes = 0
        self._first_has_ended = False

    def join(self, stops: Callable[[], bool]) -> dict[str, Any]:
        """Connect to node 0 and wait for the layout.

        Raises:
            PeersError: Node 0 does not answer.
        """
        end_s = time.monotonic() + pod_part.WAIT_S
        while not stops() and time.monotonic() < end_s:
            with contextlib.suppress(OSError, ValueError):
                endpoints = self._try(stops, end_s)
                if endpoints is not None:
                    return {"node_rank": self._node, "endpoints": endpoints}
            time.sleep(pod_part.PAUSE_S)
        raise PeersError(f"Node 0 of the trial does not answer at {self._first}.")

    def _try(self, stops: Callable[[], bool], end_s: float) -> list[Endpoint] | None:
        link = connect(self._first, pod_part.PORT, self._node)
        try:
            introduce(link, self._token, ports.find_free(self._workers + 1, link.own_address))
            while not link.is_closed and not stops() and time.monotonic() < end_s:
                for message in link.received():
                    if "endpoints" in message:
                        self._link = link
                        return list(message["endpoints"])
                time.sleep(pod_part.PAUSE_S)
        finally:
            if self._link is not link:
                link.close()
        return None

    def advance(self, status: StatusFile) -> None:
        """Do what is due."""
        directory = status.directory
        status.read()
        link = self._link
        if link is None:
            return
        self._send_partials(link, directory)
        for message in link.received():
            if "launch" in message:
                pod_part.tell(directory, wire.LAUNCH_FILE, str(message["launch"]).encode())
            if "end" in message:
                request_end(directory, str(message["end"]))
            self._first_has_ended = self._first_has_ended or "ended" in message
        if link.is_closed:
            link.close()
            self._link = None
            if not self._first_has_ended:
                request_end(directory, f"{ENDED_BECAUSE}node 0: its pod is lost.")

    def _send_partials(self, link: PeerLink, directory: str) -> None:
        """What the ranks of this node report together, as far as it is written."""
        path = f"{directory}/{wire.stream_of_rank(wire.PARTIALS, self._node)}"
        with contextlib.suppress(OSError), open(path, "rb") as file:
            file.seek(self._sent_bytes)
            while data := file.read(_PIECE):
                link.send({"partials": data.decode("latin-1")})
                self._sent_bytes += len(data)

    def finish(self, status: StatusFile) -> None:
        """Send what is left and how this node has ended, and close."""
        if self._link is not None:
            self.advance(status)
        if self._link is not None:
            self._link.send({"ended": status.state, "reason": str(status.content.get("reason") or "")})
            self._link.close()
