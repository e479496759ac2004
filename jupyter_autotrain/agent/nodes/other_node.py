"""A node of a trial but the first: its supervisor is connected to that of node 0."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

from jupyter_autotrain.agent.nodes.link import Message, NodeLink
from jupyter_autotrain.agent.nodes.part import NodePart, Watch
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial.termination_causes import ended_because

_CONNECT_S = 2.0
_FIRST_PAUSE_S = 0.02
_MOST_PAUSE_S = 1.0
_GROWTH = 1.5
_PATIENCE_S = 60.0


class OtherNode(NodePart):
    """The part of another node than the first."""

    def __init__(self, trial: Mapping[str, object], token: str, watch: Watch) -> None:
        super().__init__(trial, token, watch)
        self._link: NodeLink | None = None
        self._next_s = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._lost_s = 0.0
        self._why = ""

    @property
    def missing(self) -> str:
        """A sentence about node 0."""
        if self._link is not None:
            return "Node 0 of the trial answers, and other nodes have not come."
        address, port = self.first
        return f"Node 0 of the trial does not answer at {address}, port {port}: {self._why}."

    def _exchange(self) -> None:
        link = self._link
        if link is None:
            self._connect_again()
            return
        link.flush()
        for message in link.received():
            self._take(message)
        if link.is_closed:
            self._drop(link)
            self._link = None
            self._lost_s = time.monotonic()

    def _connect_again(self) -> None:
        """Connect until the nodes have met; later only in an elastic trial, for a while: else this node ends."""
        now_s = time.monotonic()
        if self.endpoints and not (self._is_elastic and now_s - self._lost_s < _PATIENCE_S):
            self.end_reason = self.end_reason or ended_because(0, "it is lost.")
        elif not self.fault and now_s >= self._next_s:
            self._next_s = now_s + self._pause_s
            self._pause_s = min(_GROWTH * self._pause_s, _MOST_PAUSE_S)
            self._connect()

    def _connect(self) -> None:
        try:
            connected = socket.create_connection(self.first, timeout=_CONNECT_S)
            link = NodeLink(connected, self._token, is_first=False)
            address = link.own_address
            free = ports.find_free(self._ports, address)
        except OSError as error:
            self._why = str(error.strerror or error)
            return
        self._why = "it does not let this node in"
        link.send({"node": self.node, "address": self._address or address, "ports": free})
        self._watch.add(link.fd)
        self._link = link

    def _take(self, message: Message) -> None:
        if "endpoints" in message:
            self.endpoints = self.endpoints or list(message["endpoints"])
        self.launch_command = str(message.get("launch") or self.launch_command)
        self.end_reason = str(message.get("end") or self.end_reason)
        self._take_stop(message)

    def _tell(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(message)

    def report(self, lines: str) -> None:
        """Tell node 0 what the ranks of this node report together."""
        self._tell({"partials": lines})

    def finish(self, state: str, reason: str) -> None:
        """Tell node 0 how the part of this node has ended, and close the link."""
        self._tell({"ended": state, "reason": reason})
        if self._link is not None:
            self._link.drain()
            self._drop(self._link)
            self._link = None
