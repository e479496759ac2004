"""Follows the jobs of a service: their states by one request, their logs into the home, and their ends.

It keeps nothing that a restart would miss: a job is found by its name, and what has come of a trial lies in the home.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.log_channel import judging
from jupyter_autotrain.backends.log_channel.collected import GapError
from jupyter_autotrain.backends.services.service import Service, ServiceState
from jupyter_autotrain.backends.services.tracked_job import ServiceJob
from jupyter_autotrain.errors import AutotrainError

_TAIL_LINES = 60  # a running trial writes a few in a second
_READERS = 8
_PIECE_BYTES = 2 << 20
_PROVED_S = 60.0
_WAIT_S = 0.05
_GONE = ServiceState(TrialState.LOST, "Lost: the service does not know its job any more.")
_log = logging.getLogger(__name__)


class JobFollower:
    """Follows jobs in a thread of its own, from the first one on.

    Args:
        service: The service.
        on_news: Takes the id of a job that something is new of.
    """

    def __init__(self, service: Service, on_news: Callable[[str], None]) -> None:
        self._service = service
        self._on_news = on_news
        self._lock = threading.Lock()
        self._jobs: dict[str, ServiceJob] = {}
        self._wakes = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def track(self, job: ServiceJob) -> ServiceJob:
        """Follow a job from now on; returns the one that is followed already where there is one."""
        with self._wakes:
            known = self._jobs.setdefault(job.ref.job_id, job)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="autotrain-service", daemon=True)
                self._thread.start()
            if known is job:
                self._wakes.notify()
        return known

    def known(self, job_id: str) -> ServiceJob | None:
        """Return a job that is followed."""
        with self._lock:
            return self._jobs.get(job_id)

    def look_soon(self) -> None:
        """Look at once: something was asked of a job."""
        with self._wakes:
            self._wakes.notify()

    def close(self) -> None:
        """Follow no more; jobs go on."""
        with self._wakes:
            self._is_closed = True
            self._wakes.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(_READERS, "autotrain-log") as readers:
            while not self._is_closed:
                with self._lock:
                    jobs = [job for job in self._jobs.values() if job.settled() is None]
                if jobs:
                    self._look(jobs, readers)
                with self._wakes:
                    if not self._is_closed:
                        self._wakes.wait(self._service.pause_s if jobs else None)

    def _look(self, jobs: Sequence[ServiceJob], readers: ThreadPoolExecutor) -> None:
        try:
            states = self._service.states([job.ref for job in jobs])
        except AutotrainError as error:
            self._note_fault(jobs, error.found)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is: it is tried again, and shown meanwhile
            _log.exception("the service cannot be asked")
            self._note_fault(jobs, f"the service cannot be asked: {error!r}")
            return
        for job in jobs:
            self._note_state(job, states.get(job.name))
        list(readers.map(self._follow, jobs))

    def _note_fault(self, jobs: Sequence[ServiceJob], fault: str) -> None:
        for job in jobs:
            is_new = job.fault != fault
            job.fault = fault
            if is_new:
                self._on_news(job.ref.job_id)

    def _note_state(self, job: ServiceJob, found: ServiceState | None) -> None:
        before, job.state = job.state, found or _GONE
        if job.state != before:
            self._on_news(job.ref.job_id)
        if not job.is_over():
            job.over_since_s = 0.0
        elif not job.over_since_s:
            job.over_since_s = time.monotonic()

    def _follow(self, job: ServiceJob) -> None:
        try:
            self._read(job)
            job.fault = ""
            self._settle(job)
        except AutotrainError as error:
            self._note_fault([job], error.found)
            self._settle_unread(job)
        except OSError as error:  # of a home whose disk is full
            self._note_fault([job], f"what comes of it cannot be written: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - whatever it is: the log is read again, and the fault shown meanwhile
            _log.exception("%s cannot be followed", job.ref.job_id)
            self._note_fault([job], f"its log cannot be read: {error!r}")
            self._settle_unread(job)

    def _read(self, job: ServiceJob) -> None:
        state = job.state
        if state is None or state is _GONE or state.state is TrialState.PREPARING:
            return
        wants_all = not job.is_read or job.is_over() or job.lacks_files()
        for node in range(len(job.readers)):
            self._read_node(job, state, node, wants_all=wants_all)
        job.is_read = True

    def _read_node(self, job: ServiceJob, state: ServiceState, node: int, *, wants_all: bool) -> None:
        reader = job.readers[node]
        if not wants_all:
            lines = self._service.log(job.ref, state, _TAIL_LINES, node).splitlines()
            is_new, wants_all = reader.keep(lines, is_whole=False)
            if is_new:
                self._on_news(job.ref.job_id)
        if wants_all:
            lines = self._service.log(job.ref, state, None, node).splitlines()
            fetch = None if job.is_over() else partial(self._missing, job, node)
            is_new, _ = reader.keep(lines, is_whole=self._may_be_marked(job), fetch=fetch)
            if is_new:
                self._on_news(job.ref.job_id)

    def _missing(self, job: ServiceJob, node: int, gap: GapError) -> bytes:
        """Return bytes that the log of a running worker does not hold any more, from the worker itself."""
        found = b""
        while len(found) < gap.end - gap.begin:
            begin = gap.begin + len(found)
            data = self.piece(job, gap.path, begin, min(_PIECE_BYTES, gap.end - begin), node)
            if not data:
                break
            found += data
        return found

    def _may_be_marked(self, job: ServiceJob) -> bool:
        """Return whether what is missing in the whole log will not come any more."""
        return job.is_over() and self._has_waited(job)

    def _has_waited(self, job: ServiceJob) -> bool:
        return time.monotonic() - job.over_since_s > self._service.settle_s

    def _settle(self, job: ServiceJob) -> None:
        """Settle the end of a trial where it has come."""
        if job.lacks_files() and not job.is_over():
            self._fetch_lost(job)
        if job.has_ended():
            if not job.is_over():
                self._fetch_left(job)
                self._fetch_states(job)
            status = judging.ended(job.ref, job.statuses())
            if status is not None:
                self.end(job, status)
                return
        if job.is_over() and self._has_waited(job):
            self._settle_without_end(job)

    def _settle_unread(self, job: ServiceJob) -> None:
        """End a trial whose log cannot be read for long after its end, as where its node is gone."""
        if job.is_over() and time.monotonic() - job.over_since_s > self._service.settle_s + _PROVED_S:
            self._settle_without_end(job)

    def _settle_without_end(self, job: ServiceJob) -> None:
        state = cast("ServiceState", job.state)
        status = judging.ended(job.ref, job.statuses(), lost=state.reason or "its worker has told no end")
        if status is None:
            printed = [line for reader in job.readers for line in reader.printed]
            status = judging.without_end(job.status(), state.state, state.reason, printed)
        self.end(job, status)

    def end(self, job: ServiceJob, status: Status) -> None:
        """Write how a trial has ended, and let go of its job.

        That comes first: once an end is known, who takes over from a killed manager asks no more about its trial.

        Raises:
            OSError: It cannot be written.
        """
        state = TrialState(str(status["state"]))
        if job.is_cancelled and state not in {TrialState.SUCCEEDED, TrialState.EARLY_STOPPED}:
            status = judging.cancelled(status)
        status = {**status, "supervisor": status.get("supervisor") or list(judging.NOBODY)}
        is_preempted = job.state is not None and job.state.state is TrialState.PREEMPTED
        job.collected.sync()
        if not is_preempted:  # which nobody could tell once its job is stopped
            self._release(job)
        job.collected.close(status)
        job.final = status
        with self._lock:
            self._jobs.pop(job.ref.job_id, None)
        if is_preempted:
            self._release(job)
        self._on_news(job.ref.job_id)

    def _release(self, job: ServiceJob) -> None:
        try:
            if job.state is not None and job.state.state is TrialState.PREEMPTED:
                self._service.stop(job.ref, job.state)  # else the service begins it again some day
            self._service.release(job.ref, waits=not job.is_over() and self._waits(job))
        except (AutotrainError, OSError) as error:  # it ends by itself after a while
            _log.warning("%s is not released: %s", job.name, error)

    def _waits(self, job: ServiceJob) -> bool:
        """Return whether a job waits at its end until all of its trial is collected."""
        return not self._service.keeps_whole_log or job.has_left_much()

    def _fetch_left(self, job: ServiceJob) -> None:
        """Fetch the files that were too much for the log: small ones first, up to the limit of the trial."""
        for number, node in enumerate(job.collected.nodes):
            room_bytes = cast("int", job.ref.data.get("fetch_limit_bytes") or 0)
            for path, have, size in sorted(node.missing(), key=lambda one: one[2]):
                room_bytes -= size
                if room_bytes < 0:
                    break
                self._fetch_rest(job, number, path, max(have, 0), size)

    def _fetch_lost(self, job: ServiceJob) -> None:
        """Fetch what the logs should have held, and do not hold any more."""
        for number, node in enumerate(job.collected.nodes):
            for path, have, size in list(node.missing()):
                if path not in node.left:
                    self._fetch_rest(job, number, path, max(have, 0), size)

    def _fetch_states(self, job: ServiceJob) -> None:
        """Fetch the last states where the logs have lost them, which no listing tells of."""
        for number, node in enumerate(job.counted):
            status = node.status()
            if status is not None and TrialState(str(status["state"])).is_final:
                continue
            while data := self.piece(job, places.STATES, node.size(places.STATES), _PIECE_BYTES, number):
                node.append(places.STATES, node.size(places.STATES), data)

    def _fetch_rest(self, job: ServiceJob, node: int, path: str, offset: int, size: int) -> None:
        while offset < size:
            data = self.piece(job, path, offset, min(_PIECE_BYTES, size - offset), node)
            if not data:
                break
            job.collected.nodes[node].append(path, offset, data)
            offset += len(data)

    def piece(self, job: ServiceJob, path: str, offset: int, most_bytes: int, node: int = 0) -> bytes:
        """Return a part of a file of a running trial.

        Raises:
            BackendError: It does not run, or there is no such file.
        """
        asked: JsonObject = {"do": "get", "path": path, "offset": offset, "most_bytes": most_bytes}
        return base64.b64decode(str(self._service.ask(job.ref, cast("ServiceState", job.state), asked, node)))

    def wait_known(self, job: ServiceJob, within_s: float) -> bool:
        """Wait for the service to say how a job stands; return whether it does."""
        return self._wait(lambda: job.settled() is not None or job.state is not None, within_s)

    def wait_final(self, job: ServiceJob, within_s: float) -> bool:
        """Wait for the end of a trial to be settled; return whether it is."""
        return self._wait(lambda: job.settled() is not None, within_s)

    def wait_over(self, job: ServiceJob, within_s: float) -> bool:
        """Wait for the service to say that a job has ended; return whether it does."""
        return self._wait(lambda: job.settled() is not None or job.is_over(), within_s)

    def _wait(self, condition: Callable[[], bool], within_s: float) -> bool:
        end_s = time.monotonic() + within_s
        while not condition() and time.monotonic() < end_s:
            self.look_soon()
            time.sleep(_WAIT_S)
        return condition()
