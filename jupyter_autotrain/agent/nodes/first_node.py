"""Node 0 of a trial: the supervisors of all other nodes are connected to it, and it passes on what they say."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.nodes.link import Message, NodeLink
from jupyter_autotrain.agent.nodes.part import GOOD, Endpoint, NodePart, Watch
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial.termination_causes import ended_because

_STRANGER_S = 10.0  # to prove that it knows the token
_MOST_STRANGERS = 64


class FirstNode(NodePart):
    """The part of node 0. It listens until all have come; in an elastic trial, always."""

    def __init__(self, trial: Mapping[str, object], token: str, watch: Watch) -> None:
        super().__init__(trial, token, watch)
        self._links: dict[int, NodeLink] = {}
        self._strangers: dict[NodeLink, float] = {}  # that have not said who they are, and until when they may
        self._told: dict[int, Endpoint] = {}
        self._ended: set[int] = set()
        self._reached: dict[int, int] = {}
        self._has_told_end = False
        self._has_launched = False
        self._listener: socket.socket | None = None
        if not self.fault:
            self._listen()

    @property
    def missing(self) -> str:
        """A sentence about the nodes that have not come."""
        return f"Only {len(self._links) + 1} of {self.nodes} nodes of the trial have come."

    @property
    def awaits_others(self) -> bool:
        """True while the part of another node runs; an elastic trial ends with its first node."""
        return bool(self.endpoints) and not self._is_elastic and len(self._ended - {0}) < self.nodes - 1

    def _listen(self) -> None:
        try:
            own = next(filter(_is_number, (self._address, self.first[0])), "")
            self._listener = _listener(own or _own_address(), self.first[1], self.nodes)
        except OSError as error:
            self.fault = f"Node 0 cannot listen for the other nodes: {error.strerror}. {self._advice()}"
            return
        self._listener.setblocking(False)
        self._watch.add(self._listener.fileno())

    def _exchange(self) -> None:
        self._let_in()
        for link in list(self._links.values()):
            link.flush()
            for message in link.received():
                self._take(link.node, message)
            if link.is_closed:
                self._lose(link)
        if not self.endpoints and len(self._links) == self.nodes - 1:
            self._tell_endpoints()

    def _let_in(self) -> None:
        """Take those that have connected, and know the token."""
        while self._listener is not None and len(self._strangers) < _MOST_STRANGERS:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                break
            link = NodeLink(connected, self._token, is_first=True)
            self._strangers[link] = time.monotonic() + _STRANGER_S
            self._watch.add(link.fd)
        for link, until_s in list(self._strangers.items()):
            message = next(link.received(), None)
            if message is not None or link.is_closed or time.monotonic() > until_s:
                del self._strangers[link]
                self._meet(link, message or {})

    def _meet(self, link: NodeLink, message: Message) -> None:
        node = message.get("node")
        if not isinstance(node, int) or not 0 < node < self.nodes:
            self._drop(link)
            return
        if node in self._links:
            self._drop(self._links.pop(node))
        link.node = node
        self._links[node] = link
        self._told[node] = [str(message.get("address")), list(map(int, message.get("ports", ())))]
        self._ended.discard(node)
        if self.endpoints:  # of an elastic trial, which has lost it before
            self.endpoints[node] = self._told[node]
            link.send({"endpoints": self.endpoints})

    def _tell_endpoints(self) -> None:
        address = next(iter(self._links.values())).own_address
        self._told[0] = [self._address or address, ports.find_free(self._ports, address)]
        self.endpoints = [self._told[node] for node in range(self.nodes)]
        self._tell({"endpoints": self.endpoints})
        if not self._is_elastic:
            self._close_listener()

    def _take(self, node: int, message: Message) -> None:
        if "partials" in message:
            self.on_partials(node, str(message["partials"]).splitlines())
        if "stop" in message and not self._has_stop:
            self._take_stop(message)
            self._tell({"stop": message["stop"]})
        if "reached" in message:
            self._reached[node] = int(message["reached"])
            self._agree()
        if "ended" in message:
            is_bad = message["ended"] not in GOOD
            self._end(node, str(message.get("reason") or message["ended"]) if is_bad else "")

    def _lose(self, link: NodeLink) -> None:
        self._drop(self._links.pop(link.node))
        if self.endpoints and link.node not in self._ended:  # before, it may come again
            self._end(link.node, "it is lost.")

    def _end(self, node: int, why: str) -> None:
        """Note that a node's part has ended; where that went badly, the others end too."""
        self._ended.add(node)
        self.on_partials(node, None)
        if why and not self._is_elastic:
            self.end_reason = self.end_reason or ended_because(node, why)
            self._tell_end(self.end_reason)
        self._agree()
        if self._has_launched and not self.awaits_others:
            with contextlib.suppress(OSError):  # a full disk
                wire.write_atomically(wire.LAUNCH_ENDED_FILE, b"", sync=False)

    def _agree(self) -> None:
        """Tell the latest call that one has come to, once all have told theirs whose ranks still run."""
        if self._reached and len(self._ended | set(self._reached)) == self.nodes:
            message = {"stop_at": max(self._reached.values())}
            self._take_stop(message)
            self._tell(message)

    def _tell(self, message: Message) -> None:
        """Tell the others; the call that this node has come to counts as theirs do, which tell theirs."""
        if "reached" in message:
            self._take(0, message)
            return
        for link in self._links.values():
            link.send(message)

    def _tell_end(self, reason: str) -> None:
        if not self._has_told_end:
            self._has_told_end = True
            self._tell({"end": reason})

    def launch(self, commands: Mapping[int, str]) -> None:
        """Have commands run on other nodes, by their numbers."""
        self._has_launched = True
        for node, command in commands.items():
            if node in self._links:
                self._links[node].send({"launch": command})

    def end_ranks(self) -> None:
        """Wait for no call of `should_stop()` of this node any more."""
        self._ended.add(0)
        self._agree()

    def finish(self, state: str, reason: str) -> None:
        """End the others too where the trial has ended badly, or is elastic; close all links."""
        if self._is_elastic or state not in GOOD:
            self._tell_end(ended_because(0, reason or state))
        for link in self._links.values():
            link.drain()
        for link in [*self._links.values(), *self._strangers]:
            self._drop(link)
        self._links = {}
        self._strangers = {}
        self._close_listener()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
            self._listener = None


def _listener(address: str, port: int, nodes: int) -> socket.socket:
    if address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=nodes)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=nodes, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=nodes)


def _is_number(address: str) -> bool:
    """Tell whether an address is one, and not a name, which may lead elsewhere on its own host."""
    try:
        socket.getaddrinfo(address or "-", None, flags=socket.AI_NUMERICHOST)
    except OSError:
        return False
    return True


def _own_address() -> str:
    """Return this machine's own address; "" (all addresses) where its name leads to none, or to several."""
    try:
        places: Sequence[tuple[object, ...]] = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    addresses = {str(place[4][0]) for place in places}  # type: ignore[index]  # each ends with an address and a port
    own = [address for address in addresses if address != "::1" and not address.startswith("127.")]
    return own[0] if len(own) == 1 else ""
