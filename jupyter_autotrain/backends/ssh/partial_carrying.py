"""Brings what the ranks of other hosts report together to the first host, whose supervisor makes one value of all.

The stream `partials-N` of host N is appended to the file of that name on the first host (see `worker.reduction`). How
far that has come is the size of this file, so nothing is lost and nothing doubled, whoever carries it on: the agent
there takes what lies beyond its end, and tells the size. The offsets kept here only spare sending bytes again. The
first host's supervisor waits for the end of each stream; where a host could not write it, it is added here when the
host's part has ended and all of its stream is there.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import cast

from jupyter_autotrain.backends.ssh.node_jobs import Nodes
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Cursor, JobRef, JobStatus
from jupyter_autotrain.errors import AutotrainError

_END = wire.PARTIALS_END.encode()
_ENDED = -1


class PartialCarrier:
    """Carries the streams of trials on several hosts.

    Args:
        nodes: What is done on one host.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._carried: dict[tuple[str, int], int] = {}  # by job and node: bytes that the first host has, or _ENDED

    def carry(self, own: Sequence[JobStatus]) -> None:
        """Carry what is new, by the statuses of a trial's hosts; what cannot be done now is done later."""
        first = own[0]
        if first.doubt:
            return
        if first.state.is_final:
            for node in range(1, len(own)):
                self._carried.pop((str(first.ref.data["job"]), node), None)
            return
        for node, status in enumerate(own[1:], 1):
            key = (str(first.ref.data["job"]), node)
            offset = self._carried.get(key, 0)
            if offset != _ENDED:
                try:
                    self._carried[key] = self._carry(first.ref, node, status, offset)
                except AutotrainError:
                    continue  # with the next poll

    def _carry(self, first: JobRef, node: int, status: JobStatus, offset: int) -> int:
        """Carry what host `node` has from an offset on; gives how much the first one has then."""
        stream = wire.stream_of_rank(wire.PARTIALS, node)
        chunk = self._nodes.chunks([Cursor(status.ref, stream, offset)])[0]
        if chunk.data:
            return self._append(first, stream, offset, chunk.data)
        if chunk.fault or status.doubt or not status.state.is_final:
            return offset
        rest = self._rest(status.ref, stream, offset)
        return self._append(first, stream, offset, rest or _END)

    def _append(self, first: JobRef, stream: str, offset: int, data: bytes) -> int:
        link = self._nodes.link(str(first.data["host"]))
        text = base64.b64encode(data).decode()
        size = cast("int", link.ask("append", job=first.data["job"], path=stream, offset=offset, data=text))
        is_end = data.endswith(_END) and size == offset + len(data)
        return _ENDED if is_end else size

    def _rest(self, ref: JobRef, stream: str, offset: int) -> bytes:
        """What a host still has of a stream, as it says itself; empty where there is no such stream.

        Raises:
            AutotrainError: It cannot be told.
        """
        link = self._nodes.link(str(ref.data["host"]))
        sizes = cast("dict[str, int]", link.ask("list", job=ref.data["job"], path="."))
        if sizes.get(stream, 0) <= offset:
            return b""
        return base64.b64decode(cast("str", link.ask("get", job=ref.data["job"], path=stream, offset=offset)))
