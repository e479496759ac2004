"""States and streams of jobs on several hosts: from what their agents have pushed, else asked side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from jupyter_autotrain.backends.ssh import agent_responses, subscribing
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.text_format import duration
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

Asked = TypeVar("Asked")
Told = TypeVar("Told")
OfHost: TypeAlias = Callable[[Sequence[Asked], bool], "list[Told] | None"]  # None where the host has to be asked first
_MARGIN_S = 10.0  # to end itself, since the same time
_PATIENCE_S = 0.5  # for all hosts that have to be asked; who is late is a doubt until the next poll


class JobLocator(Protocol):
    """Where jobs are."""

    def host_of(self, ref: JobRef) -> str:
        """The host's name."""
        ...

    def link_to(self, ref: JobRef) -> HostLink:
        """The link to its host.

        Raises:
            BackendUnavailableError: The profile does not name it any more.
        """
        ...

    def name_there(self, ref: JobRef) -> str:
        """The job's name on its host."""
        ...


class Observer:
    """Answers for jobs on several hosts.

    Args:
        locator: Where the jobs are.
        lost_after_s: How long a host may be silent until its jobs are lost, which end themselves there; None: for ever.
    """

    def __init__(self, locator: JobLocator, lost_after_s: float | None = None) -> None:
        self._locator = locator
        self._lost_after_s = lost_after_s
        self._side_by_side = SideBySide()

    def statuses(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """The state of each job; what a host cannot tell now is a doubt, never an end."""

        def of_host(group: Sequence[JobRef], may_ask: bool) -> list[JobStatus] | None:
            try:
                link = self._locator.link_to(group[0])
                jobs = [self._locator.name_there(ref) for ref in group]
                told = subscribing.ask_statuses(link, jobs) if may_ask else subscribing.known_statuses(link, jobs)
            except BackendUnavailableError as error:
                return [self._silent(ref, error.found.rstrip(".")) for ref in group]
            except AutotrainError as error:
                return [_doubt(ref, error.found.rstrip(".")) for ref in group]
            if told is None:
                return None
            return [agent_responses.status(ref, answer) for ref, answer in zip(group, told, strict=True)]

        return self._each_host(refs, self._locator.host_of, of_host, self._late_status)

    def chunks(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """What is new of each stream."""

        def of_host(group: Sequence[Cursor], may_ask: bool) -> list[Chunk] | None:
            try:
                link = self._locator.link_to(group[0].ref)
                wanted = [(self._locator.name_there(one.ref), one.stream, one.offset) for one in group]
                told = subscribing.ask_pieces(link, wanted) if may_ask else subscribing.known_pieces(link, wanted)
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
            found = answers[host] or [late(one) for one in items[host]]
            told.update(zip(numbers, found, strict=True))
        return [told[number] for number in range(len(asked))]

    def _silent(self, ref: JobRef, why: str) -> JobStatus:
        """Return the status of a job on a silent host: it goes on there until it ends itself for want of contact."""
        with contextlib.suppress(BackendUnavailableError):
            limit_s = self._lost_after_s
            if limit_s is not None and self._locator.link_to(ref).silent_s > limit_s + _MARGIN_S:
                name = self._locator.host_of(ref)
                reason = f"Lost: {name} has not answered for {duration(limit_s)} (`lost_after` of its profile)."
                return JobStatus(ref, TrialState.LOST, reason)
        return _doubt(ref, why, unreachable=True)

    def _late_status(self, ref: JobRef) -> JobStatus:
        return _doubt(ref, f"{self._locator.host_of(ref)} has not answered yet")

    def _late_chunk(self, cursor: Cursor) -> Chunk:
        return Chunk(cursor, b"", f"{self._locator.host_of(cursor.ref)} has not answered yet")


def _doubt(ref: JobRef, why: str, *, unreachable: bool = False) -> JobStatus:
    return JobStatus(ref, TrialState.PREPARING, doubt=why, unreachable=unreachable)
