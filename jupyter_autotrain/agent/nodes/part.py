"""The part of one node in a trial on several: a state machine that its supervisor drives, and that never waits.

```
meet      each node tells node 0 where its ranks will listen; node 0 tells all of them the endpoints of all
run       what ranks report together goes to node 0; what `mpiexec` on node 0 wants to be run goes to the others;
          a request to stop that one node has got goes to all, and all stop at the latest call of `should_stop()`
end       a node tells how its part has ended. Where that went badly, or a node is lost, the others end too; an elastic
          trial ends only with node 0, goes on without a lost node, and lets it in again. Node 0 ends last
```

Node 0 sends `{"endpoints": [[address, [port, ...]], ...]}`, `{"launch": command}`, `{"stop": text}`,
`{"stop_at": call}`, `{"end": reason}`; the others `{"node": N, "address": text, "ports": [...]}` first,
`{"partials": lines}`, `{"stop": text}`, `{"reached": call}`, `{"ended": state, "reason": text}`.

The supervisor of every other node is connected to that of node 0.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.nodes.link import Message, NodeLink
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial.termination_causes import ended_because

GOOD = frozenset({"SUCCEEDED", "EARLY_STOPPED"})
_MOST_BYTES = 1 << 16  # of a request to stop
Endpoint = list[Any]  # [address, [port, ...]]


class Watch(Protocol):
    """The wait of the supervisor, for which descriptors of links are added and removed."""

    def add(self, fd: int) -> None:
        """Wait for this descriptor, too."""
        ...

    def remove(self, fd: int) -> None:
        """Wait for this descriptor no more."""
        ...


class NodePart:
    """The part of a node; node 0 and the others differ (`FirstNode`, `OtherNode`).

    Args:
        trial: What `trial.json` says; its `layout` says where node 0 is reached.
        token: The secret that the supervisors of the trial alone know.
        watch: What the supervisor waits on.

    Attributes:
        endpoints: Of each node its address and free ports; empty until all have met.
        end_reason: Why this node shall end: the trial has ended on another one; "" while it shall not.
        fault: Why this node cannot meet the others; "" while it can.
        launch_command: The command that `mpiexec` on node 0 wants to be run on this node; "" before.
        on_partials: On node 0, takes what the ranks of another node report together; None when no more comes.
    """

    def __init__(self, trial: Mapping[str, object], token: str, watch: Watch) -> None:
        layout = fields.mapping(trial.get("layout"))
        first = layout.get("first")
        address, port = first if isinstance(first, list) and len(first) == 2 else ("", 0)
        self.first = (str(address), fields.integer(port, 0))
        self.node = fields.integer(layout.get("node_rank"), 0)
        self.nodes = fields.integer(layout.get("nodes"), 1)
        self.endpoints: list[Endpoint] = []
        self.end_reason = ""
        self.fault = "" if token else "The supervisors of the trial's nodes were given no secret to know each other by."
        self.launch_command = ""
        self.on_partials: Callable[[int, Sequence[str] | None], None] = lambda _node, _lines: None
        self._token = token
        self._watch = watch
        self._address = str(layout.get("address") or "")
        self._ports = max(1, fields.integer(trial.get("workers"), 1)) + 1  # one for each rank, and one more
        self._is_elastic = trial.get("elastic") is True
        self._wait_s = float(fields.integer(layout.get("wait_s"), 0))
        self._until_s = time.monotonic() + self._wait_s
        self._has_stop = False
        self._has_reached = False
        _forget_earlier_run()

    @property
    def missing(self) -> str:
        """A sentence about the nodes that have not come."""
        raise NotImplementedError

    @property
    def awaits_others(self) -> bool:
        """True while the part of another node runs that needs this one."""
        return False

    def advance(self) -> None:
        """Take what has come, and tell what is new."""
        self._exchange()
        if self.endpoints:
            self._tell_stop()
        elif not self.fault and time.monotonic() > self._until_s:
            self.fault = f"{self.missing} {self._advice()}"

    def launch(self, commands: Mapping[int, str]) -> None:
        """Have commands run on other nodes, by their numbers."""
        raise NotImplementedError

    def report(self, lines: str) -> None:
        """Tell node 0 what the ranks of this node report together."""
        raise NotImplementedError

    def end_ranks(self) -> None:
        """Note that the ranks of this node have ended, while its supervisor still waits for the other nodes."""

    def finish(self, state: str, reason: str) -> None:
        """Tell how the part of this node has ended, and close all links."""
        raise NotImplementedError

    def _exchange(self) -> None:
        raise NotImplementedError

    def _tell(self, message: Message) -> None:
        """Tell node 0 what this node knows."""
        raise NotImplementedError

    def _advice(self) -> str:
        address, port = self.first
        return (
            f"All nodes of a trial were expected to reach port {port} of node 0 ({address or 'this node'}) within "
            f"{self._wait_s:g} s. Let the nodes connect to each other's ports (a firewall?); `address:` of a host in "
            "its profile names another network."
        )

    def _tell_stop(self) -> None:
        """Tell that a stop is asked for here, and at which call of `should_stop()` the ranks here have seen that."""
        if not self._has_stop and (text := _text_of(wire.STOP_FILE)) is not None:
            self._has_stop = True
            self._tell({"stop": text})
        call = _text_of(wire.STOP_REACHED_FILE) if self._has_stop and not self._has_reached else None
        if call is not None and call.isdecimal():
            self._has_reached = True
            self._tell({"reached": int(call)})

    def _take_stop(self, message: Mapping[str, Any]) -> None:
        """Pass on to the ranks here that a stop is asked for, and the call at which all stop."""
        if "stop" in message and not self._has_stop:
            self._has_stop = True
            _write(wire.STOP_FILE, str(message["stop"]))
        if "stop_at" in message:
            _write(wire.STOP_AT_FILE, str(message["stop_at"]))

    def _drop(self, link: NodeLink) -> None:
        self._watch.remove(link.fd)
        link.close()


def _forget_earlier_run() -> None:
    """Remove the messages between the ranks, the launcher and the supervisor of a run that was killed."""
    of_nodes = (wire.STOP_REACHED_FILE, wire.STOP_AT_FILE, wire.LAUNCH_FILE)
    with contextlib.suppress(OSError):
        for name in os.listdir(wire.CONTROL):
            if f"{wire.CONTROL}/{name}".startswith(of_nodes):
                os.unlink(f"{wire.CONTROL}/{name}")


def _text_of(path: str) -> str | None:
    """Return the content of a file of the trial directory, which the cell may have made; None where there is none."""
    try:
        return files.read(".", path, _MOST_BYTES).decode(errors="replace")
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk
        if not os.path.exists(path):
            wire.write_atomically(path, text.encode(), sync=False)


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
