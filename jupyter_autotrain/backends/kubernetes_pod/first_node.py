"""The pod of node 0: all other pods of the trial are connected to it. Runs in the pod, with Python 3.9."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from jupyter_autotrain.backends.kubernetes_pod import pod_part
from jupyter_autotrain.backends.kubernetes_pod.peer_link import PeerLink, accept
from jupyter_autotrain.backends.kubernetes_pod.peers import PeersError
from jupyter_autotrain.backends.kubernetes_pod.pod_part import ENDED_BECAUSE, Endpoint, StatusFile, request_end
from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import fields, ports

_END = wire.PARTIALS_END.encode()


class FirstNode:
    """The pod of node 0.

    Args:
        nodes: How many there are.
        workers: How many ranks each has.
        token: Known to the pods of the trial alone.
        is_elastic: Whether the trial goes on without a lost node.
    """

    def __init__(self, nodes: int, workers: int, token: str, *, is_elastic: bool) -> None:
        self._token = token
        self._workers = workers
        self._is_elastic = is_elastic
        self._links: dict[int, PeerLink] = {}
        self._endpoints: list[Endpoint] = [["", []] for _ in range(nodes)]
        self._launched: dict[int, str] = {}
        self._ended: dict[int, str] = {}
        self._directory = ""
        self._has_ended_others = False
        self._listener = _listener(nodes)
        self._listener.settimeout(0)

    def join(self, stops: Callable[[], bool]) -> dict[str, Any]:
        """Wait for all nodes; gives the layout for `trial.json`.

        Raises:
            PeersError: They do not come.
        """
        end_s = time.monotonic() + pod_part.WAIT_S
        while len(self._links) < len(self._endpoints) - 1:
            if stops() or time.monotonic() > end_s:
                here = len(self._links) + 1
                raise PeersError(f"Only {here} of {len(self._endpoints)} nodes of the trial have come.")
            if not self._let_in():
                time.sleep(pod_part.PAUSE_S)
        address = next(iter(self._links.values())).own_address
        self._endpoints[0] = [address, ports.find_free(self._workers + 1, address)]
        for link in self._links.values():
            link.send({"endpoints": self._endpoints})
        if not self._is_elastic:
            self._listener.close()
        return {"node_rank": 0, "endpoints": self._endpoints}

    def _let_in(self) -> bool:
        """Take one pod that has connected; False where none has."""
        try:
            connected, _ = self._listener.accept()
        except OSError:
            return False
        try:
            link, about = accept(connected, self._token)
            given = [int(port) for port in about.get("ports", ())]
        except (OSError, ValueError, TypeError):
            connected.close()
            return True
        if not 0 < link.node < len(self._endpoints):
            link.close()
            return True
        if link.node in self._links:
            self._links.pop(link.node).close()
        self._ended.pop(link.node, None)
        self._links[link.node] = link
        self._endpoints[link.node] = [str(about.get("address")), given]
        return True

    def advance(self, status: StatusFile) -> None:
        """Do what is due."""
        self._directory = status.directory
        if self._is_elastic and self._let_in():
            for link in self._links.values():
                link.send({"endpoints": self._endpoints})
        for link in list(self._links.values()):
            for message in link.received():
                self._take(link.node, message)
            if link.is_closed:
                self._lost(link)
        self._pass_on_launch(status.read())
        if status.state in pod_part.FINAL and (self._is_elastic or status.state not in pod_part.GOOD):
            self._end_others(pod_part.told(status, 0))

    def _take(self, node: int, message: dict[str, Any]) -> None:
        if "partials" in message:
            self._append(node, str(message["partials"]).encode("latin-1"))
        if "ended" in message:
            self._append(node, b"")
            self._ended[node] = str(message["ended"])
            if message["ended"] not in pod_part.GOOD and not self._is_elastic:
                reason = f"{ENDED_BECAUSE}node {node}: {message.get('reason')}"
                self._end_others(reason)
                request_end(self._directory, reason)

    def _append(self, node: int, data: bytes) -> None:
        """Add to what another node's ranks report; without data its end, where that is not there."""
        path = f"{self._directory}/{wire.stream_of_rank(wire.PARTIALS, node)}"
        with open(path, "ab+") as file:
            if not data:
                file.seek(max(0, file.tell() - len(_END)))
                data = b"" if file.read() == _END else _END
            file.write(data)

    def _lost(self, link: PeerLink) -> None:
        self._links.pop(link.node).close()
        if link.node in self._ended:
            return
        self._append(link.node, b"")
        self._ended[link.node] = "LOST"
        if not self._is_elastic:
            reason = f"{ENDED_BECAUSE}node {link.node}: its pod is lost."
            self._end_others(reason)
            request_end(self._directory, reason)

    def _pass_on_launch(self, status: Mapping[str, object]) -> None:
        """What mpiexec wants to be run on the other nodes, and that they have ended."""
        for number, command in fields.mapping(status.get("launch")).items():
            node = int(number)
            if node in self._links and self._launched.get(node) != command:
                self._launched[node] = str(command)
                self._links[node].send({"launch": command})
        if self._launched and len(self._ended) == len(self._endpoints) - 1:
            self._launched = {}
            pod_part.tell(self._directory, wire.LAUNCH_ENDED_FILE, b"")

    def _end_others(self, reason: str) -> None:
        if not self._has_ended_others:
            self._has_ended_others = True
            for link in self._links.values():
                link.send({"end": reason})

    def finish(self, status: StatusFile) -> None:
        """Say how this node has ended, and close."""
        status.read()
        for link in self._links.values():
            link.send({"ended": status.state})
            link.close()
        self._listener.close()


def _listener(nodes: int) -> socket.socket:
    address = _listening_address()
    if address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, pod_part.PORT), family=family, backlog=nodes)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", pod_part.PORT), family=socket.AF_INET6, backlog=nodes, dualstack_ipv6=True)
    return socket.create_server(("", pod_part.PORT), backlog=nodes)


def _listening_address() -> str:
    """The pod's own address; "", all of them, where its name leads to none, or to one of each family."""
    try:
        places = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    addresses = {str(place[0]) for *_, place in places}
    own = [address for address in addresses if address != "::1" and not address.startswith("127.")]
    return own[0] if len(own) == 1 else ""
