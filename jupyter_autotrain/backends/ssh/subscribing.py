"""What is known of the jobs of one host: from what its agent has pushed, or by subscribing to what is not yet."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jupyter_autotrain.backends.ssh.agent_connection import AgentConnection
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.pushed_jobs import Piece
from jupyter_autotrain.backends.ssh.transport import LinkLostError
from jupyter_autotrain.core.json import JsonValue

StreamOffset: TypeAlias = tuple[str, str, int]  # job, stream, offset
_ON_ITS_WAY = "its state has not come yet"


def known_statuses(link: HostLink, jobs: Sequence[str]) -> list[JsonValue] | None:
    """The status of each job from what was pushed; None when one of them is not known.

    Raises:
        BackendUnavailableError: The host does not answer any more.
    """
    connection = link.connection_if_made()
    found = [connection.pushed.status(job) for job in jobs] if connection is not None else [(False, None)]
    return [status for _, status in found] if all(known for known, _ in found) else None


def ask_statuses(link: HostLink, jobs: Sequence[str]) -> list[JsonValue]:
    """Subscribe to jobs; gives the status of each, None where there is none, or a text that says why it is not known.

    Raises:
        BackendUnavailableError: The host cannot be reached.
    """
    connection = link.connection()
    unknown: dict[str, dict[str, int]] = {job: {} for job in jobs if not connection.pushed.status(job)[0]}
    _subscribe(link, unknown)
    found = [connection.pushed.status(job) for job in jobs]
    return [status if known else _ON_ITS_WAY for known, status in found]


def known_pieces(link: HostLink, wanted: Sequence[StreamOffset]) -> list[Piece] | None:
    """What is here of streams; None when one of them has to be subscribed. Errors as `known_statuses`."""
    connection = link.connection_if_made()
    if connection is None:
        return None
    pieces = []
    for job, stream, offset in wanted:
        piece = connection.pushed.read(job, stream, offset)
        if piece is None:
            return None
        pieces.append(piece)
        _acknowledge(connection, job, stream, piece)
    return pieces


def ask_pieces(link: HostLink, wanted: Sequence[StreamOffset]) -> list[Piece]:
    """Subscribe to streams where it is needed; gives what is there now. Errors as `ask_statuses`."""
    connection = link.connection()
    here = [connection.pushed.read(*one) for one in wanted]
    missing: dict[str, dict[str, int]] = {}
    for (job, stream, offset), piece in zip(wanted, here, strict=True):
        if piece is None:
            missing.setdefault(job, {})[stream] = offset
    _subscribe(link, missing)
    pieces = []
    for one, piece in zip(wanted, here, strict=True):
        found = piece or connection.pushed.read(*one, is_subscribed=True) or Piece(b"")
        pieces.append(found)
        _acknowledge(connection, one[0], one[1], found)
    return pieces


def _acknowledge(connection: AgentConnection, job: str, stream: str, piece: Piece) -> None:
    """Tell the agent what was taken; a connection that is lost is noticed by the next read."""
    if piece.taken is not None:
        with contextlib.suppress(LinkLostError):
            connection.tell({"do": "taken", "job": job, "stream": stream, "offset": piece.taken})


def _subscribe(link: HostLink, jobs: Mapping[str, Mapping[str, int]]) -> None:
    if not jobs:
        return
    connection = link.connection()
    for job, offsets in jobs.items():
        connection.pushed.expect(job, offsets)
    link.ask("subscribe", jobs=jobs)
