"""One watcher per backend: the thread that polls its jobs, and the calls that may take seconds.

A backend says how often its jobs are polled (`PollInterval`); one that pushes has a job with news polled at once.
Submits, cancels and copying run in a thread pool next to the polling.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, cast

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.core.backend import Backend, CancelReceipt, JobRef, PushingBackend
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendUnavailableError, DataError, SubmitUnknownError
from jupyter_autotrain.manager.artifact_sync import CheckpointMove, StreamCopy, fetch_results, log_copies
from jupyter_autotrain.manager.context import ManagerContext, Threads
from jupyter_autotrain.manager.jobs.events import (
    Cancelled,
    Discovered,
    Event,
    JobUpdate,
    SubmitFailed,
    SubmitProgress,
    Submitted,
)
from jupyter_autotrain.manager.jobs.metrics_stream import MetricsStream
from jupyter_autotrain.manager.jobs.poller import JobPoller, WatchedJob, reason_of

_log = logging.getLogger(__name__)


class JobWatcher:
    """All calls to one backend instance, which events call by the key of its profile."""

    def __init__(
        self,
        backend: Backend,
        key: str,
        emit: Callable[[Event], None],
        threads: Threads,
        context: ManagerContext,
    ) -> None:
        self.backend = backend
        self._key = key
        self._emit = emit
        self._calls = threads.calls()
        self._moves = threads.moves
        self._context = context
        self._clocks = context.clocks
        self._jobs: dict[str, WatchedJob] = {}
        self._changed = threading.Condition()  # guards `_jobs`
        self._poller = JobPoller(backend, key, emit, self._remove_job, context.clocks)

    def start(self) -> None:
        """Begin to watch, in a thread of its own that does not keep the process alive."""
        if self.backend.capabilities.pushes:
            cast("PushingBackend", self.backend).subscribe(self._note_news, self._note_progress)
        threading.Thread(target=self._watch_forever, name=f"jobs-{self.backend.name}", daemon=True).start()

    def discover(self) -> None:
        """Ask what the backend has; `Discovered` follows."""
        self._calls.submit(self._guarded, self._discover, self._discovery_failed)

    def submit(
        self,
        trial: TrialSpec,
        placement: Placement,
        secrets: Mapping[str, str],
        offset: int,
        move: CheckpointMove | None = None,
    ) -> None:
        """Start a job and watch it from byte `offset` of its metrics; `Submitted` or `SubmitFailed` follows.

        Checkpoints that it goes on from are moved before; a job whose move is abandoned is not started.
        """

        def call() -> None:
            wanted = trial if move is None else move.bring_home(trial, partial(self._note_progress, trial.job_id))
            if wanted is None:
                return
            self._context.store.sync_trial(trial.experiment_id, trial.number)
            ref = self.backend.submit(wanted, placement, secrets)
            self.watch(trial, ref, offset)  # before anyone can know of the job and cancel it
            self._emit(Submitted(trial.job_id, ref))

        threads = self._calls
        if move is not None:
            threads = self._moves
            self._note_progress(trial.job_id, "waits for its checkpoints")  # until one of the threads is free
        threads.submit(self._guarded, call, lambda error: SubmitFailed(trial.job_id, reason_of(error), _kind_of(error)))

    def abandon(self, job_id: str, move: CheckpointMove) -> None:
        """Start a job not at all that waits for its checkpoints; `SubmitFailed` follows, unless they are there."""
        if move.abandon():
            self._emit(SubmitFailed(job_id, "it had not begun", "unreachable"))

    def watch(self, trial: TrialSpec, ref: JobRef, offset: int, unknown: str = "") -> None:
        """Look at a job from now on; `JobUpdate` follows, until its state is final.

        Args:
            trial: The job's trial.
            ref: The job.
            offset: Where to read on in its metrics.
            unknown: Why its state was not known so far; `StatusUnknown` follows when it is.
        """
        now_s = self._clocks.tick_s()
        directory = None if self.backend.capabilities.shares_home else self._directory(trial)
        with self._changed:
            self._jobs[trial.job_id] = WatchedJob(
                trial,
                ref,
                MetricsStream(offset, trial.objective),
                () if directory is None or trial.client else log_copies(directory, trial),
                now_s,
                now_s,
                None if directory is None else StreamCopy(directory / wire.METRICS),
                unknown=unknown,
                unknown_since_s=now_s,
            )
            self._changed.notify()

    def cancel(self, job_id: str, grace_s: float) -> None:
        """End a job; `Cancelled` follows. It is not polled meanwhile."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None:
                job.cancelling = True
        self._calls.submit(self._cancel, job_id, job, grace_s)

    def put(self, job_id: str, path: str, data: bytes) -> None:
        """Write a file into a job's directory."""
        with self._changed:
            job = self._jobs.get(job_id)
        if job is not None:
            self._calls.submit(self._put, job.ref, path, data)

    def remove_trials(self, experiment_id: str) -> None:
        """Delete the trial directories of an experiment, as far as the backend answers."""
        self._calls.submit(trial_content.remove, self.backend, experiment_id)

    @property
    def waited_s(self) -> float:
        """Return how long it has waited for the answer of the backend that it polls; 0 where it waits for none."""
        return self._poller.waited_s

    def poll_due(self) -> float | None:
        """Poll the jobs that are due; gives the seconds until the next one is, None when there is none."""
        begun_s = self._clocks.tick_s()
        with self._changed:
            due = [job for job in self._jobs.values() if job.poll_at_s <= begun_s and not job.cancelling]
            for job in due:
                job.has_news = False
        if due:
            least_s = self._poller.poll(due)
            now_s = self._clocks.tick_s()
            for job in due:
                job.polled(now_s, self.backend.poll_interval, least_s)
        with self._changed:
            return self._pause_s()

    def _pause_s(self) -> float | None:
        rest = [job.poll_at_s for job in self._jobs.values() if not job.cancelling]
        return max(min(rest) - self._clocks.tick_s(), 0.0) if rest else None

    def _note_news(self, job_ids: Collection[str]) -> None:
        with self._changed:
            for job_id in job_ids:
                if job_id in self._jobs:
                    self._jobs[job_id].has_news = True
            self._changed.notify()

    def _note_progress(self, job_id: str, what: str) -> None:
        self._emit(SubmitProgress(job_id, what))

    def _watch_forever(self) -> None:
        while True:
            self.poll_due()
            with self._changed:
                self._changed.wait(self._pause_s())  # as it is now: news may have come since the poll

    def _remove_job(self, job: WatchedJob, seen: JobUpdate) -> None:
        with self._changed:
            del self._jobs[job.job_id]
        if self.backend.capabilities.shares_home:
            self._emit(seen)
        else:
            self._calls.submit(self._emit_final, job, seen)

    def _emit_final(self, job: WatchedJob, seen: JobUpdate) -> None:
        """Bring the results of an ended job home, then report its end."""
        self._note_progress(job.job_id, "has ended; its results are being brought here")
        directory = self._directory(job.trial)
        limit_bytes = None if job.trial.client else job.trial.fetch_limit_bytes
        notes = fetch_results(self.backend, job.ref, directory, seen.status, limit_bytes)
        seen.frames.notes.extend((self._clocks.now_s(), level, text, 1) for level, text in notes)
        self._emit(seen)

    def _directory(self, trial: TrialSpec) -> Path:
        return self._context.home.trial(trial.experiment_id, trial.number, trial.attempt)

    def _discover(self) -> None:
        probe = self._context.retry_transient(self.backend.probe)
        inventory = self._context.retry_transient(self.backend.discover) if probe.usable else None
        self._emit(Discovered(self._key, inventory, probe.reason, probe.is_lasting))

    def _discovery_failed(self, error: Exception) -> Discovered:
        return Discovered(self._key, None, reason_of(error), not isinstance(error, BackendUnavailableError))

    def _cancel(self, job_id: str, job: WatchedJob | None, grace_s: float) -> None:
        if job is None:
            self._emit(Cancelled(job_id, CancelReceipt(note="it had ended by itself")))
            return
        try:
            receipt = self.backend.cancel(job.ref, grace_s)
            job.receipt = None if receipt.unreachable_nodes else receipt
            self._emit(Cancelled(job_id, receipt))
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises, the cancel is tried again
            self._emit(Cancelled(job_id, None, reason_of(error), isinstance(error, BackendUnavailableError)))
        with self._changed:
            job.cancelling = False
            job.due_s = self._clocks.tick_s()
            self._changed.notify()

    def _put(self, ref: JobRef, path: str, data: bytes) -> None:
        try:
            self.backend.put(ref, path, data)
        except Exception:  # noqa: BLE001 - whatever a plugin raises
            _log.exception("could not write %s of %s", path, ref.job_id)

    def _guarded(self, call: Callable[[], None], failure_event: Callable[[Exception], Event]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes the trial's reason
            _log.warning("%s: %s", self.backend.name, reason_of(error))
            self._emit(failure_event(error))


def _kind_of(error: Exception) -> Literal["refused", "impossible", "unreachable", "unknown"]:
    if isinstance(error, SubmitUnknownError):
        return "unknown"
    if isinstance(error, DataError):  # what was submitted has changed since
        return "impossible"
    return "unreachable" if isinstance(error, BackendUnavailableError) else "refused"
