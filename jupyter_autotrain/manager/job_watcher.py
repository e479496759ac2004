"""One watcher per backend: the thread that polls its jobs, and the thread pool that makes its slow calls.

A job is looked at often while it is young, then ever less: after a tenth of its age, between 5 and 100 ms. So a trial
of milliseconds is seen at once and a trial of hours costs next to nothing. Submits and cancels run beside the watching,
because they may take seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Backend, CancelReceipt, Chunk, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.artifact_sync import fetch_results, keep_logs
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.events import (
    Cancelled,
    Discovered,
    Doubted,
    Event,
    Refused,
    Seen,
    Submitted,
    Unreachable,
)
from jupyter_autotrain.manager.frames import Frames
from jupyter_autotrain.manager.stream import Stream

_AGE_SHARE = 0.1
_LEAST_PAUSE_S = 0.005
_MOST_PAUSE_S = 0.1
_LOOK_SHARE = 4.0  # a slow place is left alone four times as long as looks at it take; one slow look is chance
_SILENCE_PAUSE_S = 2.0
_MOST_READS = 16  # of one job in one look, so that a long stream does not keep the others waiting
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    trial: TrialSpec
    ref: JobRef
    stream: Stream
    since_s: float
    due_s: float
    state: TrialState | None = None
    cancelling: bool = False
    receipt: CancelReceipt | None = None
    doubt: str = ""
    doubted_since_s: float = 0.0

    def pause_s(self, now_s: float) -> float:
        """How long to leave it alone; longer and longer, the more so while a look at it fails."""
        since_s, most_s = (self.doubted_since_s, _SILENCE_PAUSE_S) if self.doubt else (self.since_s, _MOST_PAUSE_S)
        return min(max((now_s - since_s) * _AGE_SHARE, _LEAST_PAUSE_S), most_s)


class JobWatcher:
    """All calls to one backend instance."""

    def __init__(
        self, backend: Backend, emit: Callable[[Event], None], executor: Executor, context: ManagerContext
    ) -> None:
        self.backend = backend
        self._emit = emit
        self._executor = executor
        self._context = context
        self._clocks = context.clocks
        self._watched: dict[str, _Watched] = {}
        self._news = threading.Condition()
        self._silent = False
        self._look_s = 0.0

    def start(self) -> None:
        """Begin to watch, in a thread of its own that does not keep the process alive."""
        threading.Thread(target=self._watch_for_ever, name=f"jobs-{self.backend.name}", daemon=True).start()

    def discover(self) -> None:
        """Ask what the place has; `Discovered` follows."""
        name = self.backend.name
        self._executor.submit(self._guarded, self._discover, lambda why: Discovered(name, None, why))

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str], offset: int) -> None:
        """Start a job and watch it from byte `offset` of its metrics; `Submitted` or `Refused` follows."""

        def call() -> None:
            ref = self.backend.submit(trial, placement, secrets)
            self.watch(trial, ref, offset)  # before anyone can know of the job and cancel it
            self._emit(Submitted(trial.job_id, ref))

        self._executor.submit(self._guarded, call, lambda why: Refused(trial.job_id, why))

    def watch(self, trial: TrialSpec, ref: JobRef, offset: int) -> None:
        """Look at a job from now on; `Seen` follows, until its state is final."""
        now = self._clocks.tick_s()
        with self._news:
            self._watched[trial.job_id] = _Watched(trial, ref, Stream(offset, trial.objective), now, now)
            self._news.notify()

    def cancel(self, job_id: str, grace_s: float) -> None:
        """End a job; `Cancelled` follows. Its metrics rest in the file meanwhile."""
        with self._news:
            watched = self._watched.get(job_id)
            if watched is not None:
                watched.cancelling = True
        self._executor.submit(self._cancel, job_id, watched, grace_s)

    def put(self, job_id: str, path: str, data: bytes) -> None:
        """Write a file into a job's directory."""
        with self._news:
            watched = self._watched.get(job_id)
        if watched is not None:
            self._executor.submit(self._put, watched.ref, path, data)

    def look(self) -> float | None:
        """Look at the jobs whose turn it is; gives the seconds until the next is due, None when there is none."""
        begun = self._clocks.tick_s()
        with self._news:
            due = [w for w in self._watched.values() if w.due_s <= begun and not w.cancelling]
        if due:
            pause = self._look_at(due, begun)
            now = self._clocks.tick_s()
            for watched in due:
                watched.due_s = now + max(watched.pause_s(now), pause)
        with self._news:
            rest = [w.due_s for w in self._watched.values() if not w.cancelling]
        return max(min(rest) - self._clocks.tick_s(), 0.0) if rest else None

    def _watch_for_ever(self) -> None:
        while True:
            pause = self.look()
            with self._news:
                if pause is None:
                    self._news.wait_for(lambda: any(not w.cancelling for w in self._watched.values()))
                else:
                    self._news.wait(pause)

    def _look_at(self, due: list[_Watched], begun: float) -> float:
        """Look; gives the least time to leave the place alone."""
        try:
            statuses = self.backend.poll([w.ref for w in due])
            chunks = self.backend.read([Cursor(w.ref, wire.METRICS, w.stream.offset) for w in due])
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises, the other backends' watchers go on
            self._say_silent(_reason(error))
            return _SILENCE_PAUSE_S
        for watched, status, chunk in zip(due, statuses, chunks, strict=True):
            self._take_guarded(watched, self._final_after_cancel(watched, status), chunk)
        self._say_silent("")
        before, self._look_s = self._look_s, self._clocks.tick_s() - begun
        return min(before, self._look_s) * _LOOK_SHARE

    def _take_guarded(self, watched: _Watched, status: JobStatus, chunk: Chunk) -> None:
        """Take what one job says; whatever is wrong with its files is its own trouble, not the other jobs'."""
        try:
            self._take(watched, status, chunk)
        except Exception as error:  # noqa: BLE001 - the log has it whole, and the user its text
            _log.exception("%s: what it left cannot be taken", watched.trial.job_id)
            self._say_doubt(watched, _reason(error))

    def _take(self, watched: _Watched, status: JobStatus, chunk: Chunk) -> None:
        if not self.backend.capabilities.shares_home:
            keep_logs(self.backend, watched.ref, self._home_directory(watched))
        self._say_doubt(watched, status.doubt)
        frames = self._frames(watched, chunk)
        if status.doubt:
            status = JobStatus(watched.ref, watched.state or TrialState.PREPARING)
        if status.state.is_final:
            self._take_last(watched, status, frames)
        elif status.state is not watched.state or frames.is_news:
            watched.state = status.state
            self._emit(Seen(watched.trial.job_id, status, frames))

    def _take_last(self, watched: _Watched, status: JobStatus, frames: Frames) -> None:
        """The job has ended, so what is read until nothing more comes is all there will ever be."""
        running = JobStatus(watched.ref, TrialState.RUNNING)
        for _ in range(_MOST_READS):
            if watched.stream.is_read_out(frames, self._clocks.tick_s()):
                frames.notes += watched.stream.last_note(self._clocks.now_s())
                with self._news:
                    del self._watched[watched.trial.job_id]
                self._executor.submit(self._end, watched, Seen(watched.trial.job_id, status, frames))
                return
            self._emit(Seen(watched.trial.job_id, running, frames))
            frames = self._frames(watched, self._read(watched, watched.stream.offset))
        self._emit(Seen(watched.trial.job_id, running, frames))

    def _frames(self, watched: _Watched, chunk: Chunk) -> Frames:
        clocks = self._clocks
        stream = watched.stream
        return stream.take(chunk, lambda offset: self._read(watched, offset), clocks.now_s(), clocks.tick_s())

    def _read(self, watched: _Watched, offset: int) -> Chunk:
        (chunk,) = self.backend.read([Cursor(watched.ref, wire.METRICS, offset)])
        return chunk

    def _final_after_cancel(self, watched: _Watched, status: JobStatus) -> JobStatus:
        if watched.receipt is None or status.state.is_final:
            return status
        return JobStatus(status.ref, TrialState.CANCELLED, "cancelled", status.detail)

    def _end(self, watched: _Watched, seen: Seen) -> None:
        """Bring the results of an ended job home, then tell of its end."""
        if not self.backend.capabilities.shares_home:
            faults = fetch_results(self.backend, watched.ref, self._home_directory(watched), seen.status)
            seen.frames.notes.extend((self._clocks.now_s(), "error", fault, 1) for fault in faults)
        self._emit(seen)

    def _home_directory(self, watched: _Watched) -> Path:
        trial = watched.trial
        return self._context.home.trial(trial.experiment_id, trial.number, trial.attempt)

    def _discover(self) -> None:
        probe = self._context.retry_transient(self.backend.probe)
        inventory = self._context.retry_transient(self.backend.discover) if probe.usable else None
        self._emit(Discovered(self.backend.name, inventory, probe.reason))

    def _cancel(self, job_id: str, watched: _Watched | None, grace_s: float) -> None:
        if watched is None:
            self._emit(Cancelled(job_id, CancelReceipt(note="it had ended by itself")))
            return
        try:
            watched.receipt = self.backend.cancel(watched.ref, grace_s)
            self._emit(Cancelled(job_id, watched.receipt))
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises, the cancel is tried again
            self._emit(Cancelled(job_id, None, _reason(error)))
        with self._news:
            watched.cancelling = False
            watched.due_s = self._clocks.tick_s()
            self._news.notify()

    def _put(self, ref: JobRef, path: str, data: bytes) -> None:
        try:
            self.backend.put(ref, path, data)
        except Exception:  # noqa: BLE001 - whatever a plugin raises
            _log.exception("could not write %s of %s", path, ref.job_id)

    def _guarded(self, call: Callable[[], None], excuse: Callable[[str], Event]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes the trial's reason
            _log.warning("%s: %s", self.backend.name, _reason(error))
            self._emit(excuse(_reason(error)))

    def _say_doubt(self, watched: _Watched, doubt: str) -> None:
        """Tell when how a job stands cannot be told any more, and when it can again."""
        if doubt and not watched.doubt:
            watched.doubted_since_s = self._clocks.tick_s()
        if doubt != watched.doubt:
            watched.doubt = doubt
            self._emit(Doubted(watched.trial.job_id, doubt))

    def _say_silent(self, reason: str) -> None:
        if bool(reason) != self._silent:
            self._silent = bool(reason)
            _log.warning("%s: %s", self.backend.name, reason or "answers again")
            self._emit(Unreachable(self.backend.name, reason))


def _reason(error: Exception) -> str:
    return str(error).replace("\n", " ") or type(error).__name__
