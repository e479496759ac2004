"""States and streams of jobs on several hosts: from what their agents have pushed, else asked side by side.

Jobs of which nothing has been pushed yet are subscribed by the first question.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.ssh.agent_connection import AgentConnection
from jupyter_autotrain.backends.ssh.host_survey import SideBySide
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.pushed_jobs import Piece
from jupyter_autotrain.backends.transfer.channels import LinkLostError
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.text_format import duration
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

Asked = TypeVar("Asked")
Told = TypeVar("Told")
OfHost: TypeAlias = Callable[[Sequence[Asked], bool], "list[Told] | None"]  # None where the host has to be asked first
_MARGIN_S = 10.0  # to end itself, since the same time
_PATIENCE_S = 0.5  # for all hosts that have to be asked; who is late is a doubt until the next poll
StreamOffset: TypeAlias = tuple[str, str, int]  # job, stream, offset
_ON_ITS_WAY = "its state has not come yet"


class JobLocator(Protocol):
    """A finder of the hosts of jobs."""

    def host_of(self, ref: JobRef) -> str:
        """Return the host's name."""
        ...

    def link_to(self, ref: JobRef) -> HostLink:
        """Return the link to its host.

        Raises:
            BackendUnavailableError: The profile does not name it any more.
        """
        ...

    def name_there(self, ref: JobRef) -> str:
        """Return the job's name on its host."""
        ...


class Observer:
    """An answerer for jobs on several hosts.

    Args:
        locator: Where the jobs are.
        lost_after_s: How long a host may be silent until its jobs are lost, which end themselves there; None: for ever.
    """

    def __init__(self, locator: JobLocator, lost_after_s: float | None = None) -> None:
        self._locator = locator
        self._lost_after_s = lost_after_s
        self._side_by_side = SideBySide()

    def statuses(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the state of each job; what a host cannot tell now is a doubt, never an end."""

        def of_host(group: Sequence[JobRef], may_ask: bool) -> list[JobStatus] | None:
            try:
                link = self._locator.link_to(group[0])
                jobs = list(map(self._locator.name_there, group))
                told = ask_statuses(link, jobs) if may_ask else known_statuses(link, jobs)
            except BackendUnavailableError as error:
                return [self._silent(ref, error.found.rstrip(".")) for ref in group]
            except AutotrainError as error:
                return [_doubt(ref, error.found.rstrip(".")) for ref in group]
            if told is None:
                return None
            return [agent_answers.status(ref, answer) for ref, answer in zip(group, told, strict=True)]

        return self._each_host(refs, self._locator.host_of, of_host, self._late_status)

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Return the new bytes of each stream."""

        def of_host(group: Sequence[Cursor], may_ask: bool) -> list[Chunk] | None:
            try:
                link = self._locator.link_to(group[0].ref)
                wanted = [(self._locator.name_there(one.ref), one.stream, one.offset) for one in group]
                told = ask_pieces(link, wanted) if may_ask else known_pieces(link, wanted)
            except AutotrainError as error:
                return [Chunk(cursor, b"", error.found.rstrip(".")) for cursor in group]
            if told is None:
                return None
            return [Chunk(one, got.data, got.fault, got.is_lasting) for one, got in zip(group, told, strict=True)]

        return self._each_host(cursors, lambda cursor: self._locator.host_of(cursor.ref), of_host, self._late_chunk)

    def _each_host(
        self,
        asked: Sequence[Asked],
        host_of: Callable[[Asked], str],
        of_host: OfHost[Asked, Told],
        late: Callable[[Asked], Told],
    ) -> list[Told]:
        """Answer in the order of what is asked: first from what is here, then by asking the other hosts at once."""
        groups: dict[str, list[int]] = {}
        for number, one in enumerate(asked):
            groups.setdefault(host_of(one), []).append(number)
        items: dict[str, list[Asked]] = {}
        for host, numbers in groups.items():
            items[host] = [asked[number] for number in numbers]
        answers = {host: of_host(group, False) for host, group in items.items()}
        unknown = {host: partial(of_host, items[host], True) for host in items if answers[host] is None}
        answers.update(self._side_by_side.call(unknown, None if len(groups) == 1 else _PATIENCE_S))
        told: dict[int, Told] = {}
        for host, numbers in groups.items():
            found = answers[host] or list(map(late, items[host]))
            told.update(zip(numbers, found, strict=True))
        return [told[number] for number in range(len(asked))]

    def _silent(self, ref: JobRef, why: str) -> JobStatus:
        """Return the status of a job on a silent host: it goes on there until it ends itself for want of contact."""
        if self.has_lost(ref):
            name = self._locator.host_of(ref)
            limit = duration(self._lost_after_s or 0.0)
            reason = f"Lost: {name} has not answered for {limit} (`lost_after` of its profile)."
            return JobStatus(ref, TrialState.LOST, reason)
        return _doubt(ref, why, unreachable=True)

    def has_lost(self, ref: JobRef) -> bool:
        """Tell whether a job's host has been silent for so long that the job is lost."""
        limit_s = self._lost_after_s
        with contextlib.suppress(BackendUnavailableError):
            return limit_s is not None and self._locator.link_to(ref).silent_s > limit_s + _MARGIN_S
        return False

    def _late_status(self, ref: JobRef) -> JobStatus:
        return _doubt(ref, f"{self._locator.host_of(ref)} has not answered yet")

    def _late_chunk(self, cursor: Cursor) -> Chunk:
        return Chunk(cursor, b"", f"{self._locator.host_of(cursor.ref)} has not answered yet")


def _doubt(ref: JobRef, why: str, *, unreachable: bool = False) -> JobStatus:
    return JobStatus(ref, TrialState.PREPARING, doubt=why, unreachable=unreachable)


def known_statuses(link: HostLink, jobs: Sequence[str]) -> list[JsonValue] | None:
    """Return the status of each job from what was pushed, or None when one of them is not known.

    Raises:
        BackendUnavailableError: The host does not answer any more.
    """
    connection = link.connection_if_made()
    found = list(map(connection.pushed.status, jobs)) if connection is not None else [(False, None)]
    return [status for _, status in found] if all(known for known, _ in found) else None


def ask_statuses(link: HostLink, jobs: Sequence[str]) -> list[JsonValue]:
    """Subscribe to jobs, and return the status of each.

    It is None where there is none, or a text that says why it is not known.

    Raises:
        BackendUnavailableError: The host cannot be reached.
    """
    connection = link.connection()
    unknown: dict[str, dict[str, int]] = {job: {} for job in jobs if not connection.pushed.status(job)[0]}
    _subscribe(link, unknown)
    found = list(map(connection.pushed.status, jobs))
    return [status if known else _ON_ITS_WAY for known, status in found]


def known_pieces(link: HostLink, wanted: Sequence[StreamOffset]) -> list[Piece] | None:
    """Return the pieces here of streams, or None when one of them has to be subscribed.

    It raises the errors of `known_statuses`.
    """
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
    """Subscribe to streams where it is needed, and return the pieces there now. Errors as `ask_statuses`."""
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
    """Tell the agent how far was read; a connection that is lost is noticed by the next read."""
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
