"""One job as its watcher holds it: what is read of it, and when it is polled next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.artifact_sync import StreamCopy
from jupyter_autotrain.manager.frames import Frames
from jupyter_autotrain.manager.metrics_stream import MetricsStream


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
        """It was polled; it is left alone for at least some seconds."""
        self.earliest_s = now_s + least_s
        self.due_s = now_s if self.has_more else now_s + max(self.pause_s(now_s, interval), least_s)

    def pause_s(self, now_s: float, interval: PollInterval) -> float:
        """How long to leave it alone."""
        if self.unknown:
            return interval.after_s(now_s - self.unknown_since_s, known=False)
        return interval.after_s(now_s - self.since_s)

    def cursors(self) -> list[Cursor]:
        """What to read of it next; of its metrics nothing while there are lines that were not taken yet.

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
        """True when, after the job's end, nothing more will come."""
        return not self.has_new_logs and self.metrics.is_read_out(frames, tick_s)

    def final_after_cancel(self, status: JobStatus) -> JobStatus:
        """The status; a job that a cancel has ended is final, also where its backend has not noted that yet."""
        if self.receipt is None or status.state.is_final:
            return status
        return JobStatus(status.ref, TrialState.CANCELLED, "cancelled", status.detail)
