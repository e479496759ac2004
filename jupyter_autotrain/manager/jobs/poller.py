"""Polling a backend: its jobs as a watcher holds them, and one round of one poll and one read for all that are due.

One round of polling a backend: one poll for all jobs that are due, then one read for all their streams. Each job has
a share of a read. Where more lies there, all jobs of the round are read again, so that one that reports much at once
keeps no other waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, CancelReceipt, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.manager.artifact_sync import StreamCopy
from jupyter_autotrain.manager.context import Clocks
from jupyter_autotrain.manager.jobs.events import Event, JobUpdate, StatusUnknown, Unreachable
from jupyter_autotrain.manager.jobs.metrics_stream import Frames, MetricsStream


@dataclass(slots=True)
class WatchedJob:
    """A job that a backend has.

    Attributes:
        metrics: Its metrics, from the stored cursor on.
        logs: Copies of its logs, where the backend does not share the home; `reports` is that of its metrics there.
        since_s: The tick from which on it is watched; `due_s` the tick of the next poll.
        has_more: Whether more was there than its share of a round; then it is polled again at once.
        has_news: Whether its backend has told that there is something new; it is polled not before `earliest_s`.
        state, reason: As they were reported last.
        receipt: Of a cancel that is through.
        unknown: Why its state is not known, or ""; since the tick `unknown_since_s`.
        unreachable_nodes: Those of its nodes that do not answer, where it is on several.
    """

    trial: TrialSpec
    ref: JobRef
    metrics: MetricsStream
    logs: tuple[StreamCopy, ...]
    since_s: float
    due_s: float
    reports: StreamCopy | None = None
    state: TrialState | None = None
    reason: str = ""
    cancelling: bool = False
    receipt: CancelReceipt | None = None
    unknown: str = ""
    unknown_since_s: float = 0.0
    unreachable_nodes: tuple[str, ...] = ()
    has_new_logs: bool = False
    has_more: bool = False
    has_news: bool = False
    earliest_s: float = 0.0

    @property
    def job_id(self) -> str:
        """The trial's job id."""
        return self.trial.job_id

    @property
    def poll_at_s(self) -> float:
        """The tick of its next poll."""
        return min(self.due_s, self.earliest_s) if self.has_news else self.due_s

    def polled(self, now_s: float, interval: PollInterval, least_s: float) -> None:
        """Note that it was polled, to be left alone for at least some seconds."""
        self.earliest_s = now_s + least_s
        self.due_s = now_s if self.has_more else now_s + max(self.pause_s(now_s, interval), least_s)

    def pause_s(self, now_s: float, interval: PollInterval) -> float:
        """Return how long to leave it alone."""
        if self.unknown:
            return interval.after_s(now_s - self.unknown_since_s, known=False)
        return interval.after_s(now_s - self.since_s)

    def cursors(self) -> list[Cursor]:
        """Return what to read of it next; of its metrics nothing while there are lines that were not taken yet.

        Raises:
            OSError: The copy of a log cannot be looked at.
        """
        metrics = () if self.metrics.has_lines else (self._metrics_cursor(),)
        return [*metrics, *(log.cursor(self.ref) for log in self.logs)]

    def _metrics_cursor(self) -> Cursor:
        return Cursor(self.ref, wire.METRICS, self.metrics.next_offset)

    def take(self, chunks: Sequence[Chunk], now_s: float, tick_s: float) -> Frames | None:
        """Take what was read of `cursors`; None when more has to be read before there is anything to say.

        Raises:
            OSError: A stream cannot be copied.
        """
        logs = chunks[len(chunks) - len(self.logs) :]
        for copy, chunk in zip(self.logs, logs, strict=True):
            copy.write(chunk)
        self.has_new_logs = any(chunk.data for chunk in logs)
        if len(logs) == len(chunks):
            return self.metrics.take(Chunk(self._metrics_cursor(), b""), now_s, tick_s)
        if self.reports is not None:
            self.reports.write(chunks[0])
        return self.metrics.take(chunks[0], now_s, tick_s)

    def is_read_out(self, frames: Frames, tick_s: float) -> bool:
        """Return True when, after the job's end, nothing more will come."""
        return not self.has_new_logs and self.metrics.is_read_out(frames, tick_s)

    def final_after_cancel(self, status: JobStatus) -> JobStatus:
        """Return the status; a job that a cancel has ended is final, also where its backend has not noted that yet."""
        if self.receipt is None or status.state.is_final:
            return status
        return JobStatus(status.ref, TrialState.CANCELLED, "cancelled", status.detail)


_SLOW_SHARE = 4.0  # the least pause after a round, in what its answers took; a single slow round is ignored
_ROUND_S = 0.2  # then the jobs are polled again that became due meanwhile
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A job in a round, its status, and what of it is being read."""

    job: WatchedJob
    status: JobStatus
    cursors: list[Cursor]


class JobPoller:
    """Rounds of one backend.

    Args:
        backend: The backend to poll.
        key: The key of its profile, for events.
        emit: Takes the events.
        on_end: Takes a job that has ended and is read out, with its last event; it is not polled again.
        clocks: The time.
    """

    def __init__(
        self,
        backend: Backend,
        key: str,
        emit: Callable[[Event], None],
        on_end: Callable[[WatchedJob, JobUpdate], None],
        clocks: Clocks,
    ) -> None:
        self._backend = backend
        self._key = key
        self._emit = emit
        self._on_end = on_end
        self._clocks = clocks
        self._is_unreachable = False
        self._answers_s = 0.0  # what the answers of the present round took
        self._earlier_answers_s = 0.0
        self._asked_s: float | None = None

    @property
    def waited_s(self) -> float:
        """Return how long it has waited for the answer to its present question; 0 where it waits for none."""
        asked_s = self._asked_s
        return 0.0 if asked_s is None else self._clocks.tick_s() - asked_s

    def _ask(self, question: Callable[[Sequence[_Asked]], list[_Answer]], about: Sequence[_Asked]) -> list[_Answer]:
        self._asked_s = self._clocks.tick_s()
        try:
            return question(about)
        finally:
            self._answers_s += self._clocks.tick_s() - self._asked_s
            self._asked_s = None

    def poll(self, due: Sequence[WatchedJob]) -> float:
        """Poll and read these jobs; gives the least pause before the next round, in seconds."""
        self._answers_s = 0.0
        try:
            statuses = self._ask(self._backend.poll, [job.ref for job in due])
            self._read(zip(due, statuses, strict=True))
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises, the other backends' watchers go on
            self._report_unreachable(reason_of(error))
            return self._backend.poll_interval.unknown_most_s
        self._report_unreachable("")
        before_s, self._earlier_answers_s = self._earlier_answers_s, self._answers_s
        return min(before_s, self._answers_s) * _SLOW_SHARE

    def _read(self, jobs: zip[tuple[WatchedJob, JobStatus]]) -> None:
        """Read all jobs in turn, a share of each, until nothing more is there or the time of a round is used up."""
        begun_s = self._clocks.tick_s()
        readings = [self._begin_reading(job, job.final_after_cancel(status)) for job, status in jobs]
        has_more = True
        while has_more and self._clocks.tick_s() - begun_s <= _ROUND_S:
            readings = self._read_share([*filter(None, readings)])
            has_more = any(reading.job.has_more for reading in filter(None, readings))

    def _read_share(self, readings: Sequence[_Reading]) -> list[_Reading | None]:
        """Read a share of each job in one question; gives what to read next of each."""
        cursors = list(chain.from_iterable(reading.cursors for reading in readings))
        chunks = iter(self._ask(self._backend.read, cursors) if cursors else ())
        return [self._process_chunks(reading, list(islice(chunks, len(reading.cursors)))) for reading in readings]

    def _begin_reading(self, job: WatchedJob, status: JobStatus) -> _Reading | None:
        try:
            return _Reading(job, status, job.cursors())
        except OSError as error:
            self._report_unknown(job, reason_of(error))
            return None

    def _process_chunks(self, reading: _Reading, chunks: list[Chunk]) -> _Reading | None:
        """Process what was read of one job; gives what to read next. A fault of its files affects no other job."""
        job = reading.job
        job.has_more = False
        try:
            is_over = self._process(job, reading.status, chunks)
        except Exception as error:  # noqa: BLE001 - the log has it whole, and the user its text
            _log.exception("%s: its output cannot be processed", job.job_id)
            self._report_unknown(job, reason_of(error))
            return None
        return None if is_over else self._begin_reading(job, reading.status)

    def _process(self, job: WatchedJob, status: JobStatus, chunks: list[Chunk]) -> bool:
        """Tell what is new; gives whether the job has ended and is read out."""
        self._report_unknown(job, status.doubt, status)
        frames = job.take(chunks, self._clocks.now_s(), self._clocks.tick_s())
        job.has_more = frames is None or job.metrics.has_lines
        if frames is None:
            return False
        if status.doubt:
            status = JobStatus(job.ref, job.state or TrialState.PREPARING, job.reason)
        if status.state.is_final:
            return self._process_final(job, status, frames)
        if (status.state, status.reason) != (job.state, job.reason) or frames.is_news:
            job.state = status.state
            job.reason = status.reason
            self._emit(JobUpdate(job.job_id, status, frames))
        return False

    def _process_final(self, job: WatchedJob, status: JobStatus, frames: Frames) -> bool:
        """Return the job has ended, so its streams are read until nothing more comes; gives whether that is so."""
        if not job.is_read_out(frames, self._clocks.tick_s()):
            self._emit(JobUpdate(job.job_id, JobStatus(job.ref, TrialState.RUNNING), frames))
            job.has_more = frames.is_news or job.has_new_logs  # else a read has failed, and is tried again later
            return False
        frames.notes += job.metrics.last_note(self._clocks.now_s())
        self._on_end(job, JobUpdate(job.job_id, status, frames))
        return True

    def _report_unknown(self, job: WatchedJob, reason: str, status: JobStatus | None = None) -> None:
        """Report when a job's state becomes unknown, and when it is known again."""
        nodes = status.unreachable_nodes if status else ()
        if reason and not job.unknown:
            job.unknown_since_s = self._clocks.tick_s()
        if (reason, nodes) != (job.unknown, job.unreachable_nodes):
            job.unknown = reason
            job.unreachable_nodes = nodes
            self._emit(StatusUnknown(job.job_id, reason, status is not None and status.unreachable, nodes))

    def _report_unreachable(self, reason: str) -> None:
        if bool(reason) != self._is_unreachable:
            self._is_unreachable = bool(reason)
            _log.warning("%s: %s", self._backend.name, reason or "answers again")
            self._emit(Unreachable(self._key, reason))


def reason_of(error: Exception) -> str:
    """Return an exception in one line."""
    return str(error).replace("\n", " ") or type(error).__name__
