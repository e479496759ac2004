"""The backend of all training services: what differs between them is a `Service`.

A trial is a job of the service. What it writes comes back in the job's log, which is followed into the home while it
runs and read once more at its end.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.directories import TrialDirectories
from jupyter_autotrain.backends.log_channel import judging
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial, collected_folder
from jupyter_autotrain.backends.log_channel.log_reading import read_stream
from jupyter_autotrain.backends.services.following import JobFollower
from jupyter_autotrain.backends.services.package import PLACE, Packer, TrialPackage, new_name
from jupyter_autotrain.backends.services.reuse import POOLED, ReusingService
from jupyter_autotrain.backends.services.service import AnswerLostError, Service, ServiceState, nodes_of
from jupyter_autotrain.backends.services.service_directory import SETTLE_S, ServiceDirectory
from jupyter_autotrain.backends.services.shared_folder import SharesFolder
from jupyter_autotrain.backends.services.tracked_job import ServiceJob
from jupyter_autotrain.core.backend import (
    BackendContext,
    CancelReceipt,
    Chunk,
    Cursor,
    JobRef,
    JobStatus,
    Probe,
    Submission,
)
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.capabilities import PollInterval
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError

_STOPPED_S = 60.0
_TOKEN = "token"  # noqa: S105 - the name of its file


class ServiceBackend(TrialDirectories, ABC):
    """Runs each trial as a job of a service.

    Args:
        profile: Its name and options.
        context: The home.
    """

    poll_interval = PollInterval(least_s=0.1, most_s=5.0)  # news are pushed
    reuse = 0  # how many long jobs there may be where the profile does not say it

    def __init__(self, profile: Profile, context: BackendContext) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        self._service = self._reusing(self.connect(profile.options))
        can = self._service.capabilities
        self.capabilities = replace(can, pushes=True, follows_files=False, keeps_output=False, elastic_nodes=False)
        self._packer = Packer(context, self._service.node_variables, lingers=not self._service.keeps_whole_log)
        self._on_news: Callable[[Collection[str]], None] = lambda _job_ids: None
        self._follower = JobFollower(self._service, lambda job_id: self._on_news([job_id]))

    @abstractmethod
    def connect(self, options: JsonObject) -> Service:
        """Return the service of a profile; asks nobody."""

    def _reusing(self, service: Service) -> Service:
        """Return the service, or that which runs trials one after another in its jobs, as the profile has it."""
        options = self._profile.options
        most = int(cast("int", options.get("reuse", self.reuse)))
        folder = service.shared_folder if most and isinstance(service, SharesFolder) else None
        return service if folder is None else ReusingService(service, folder, most, options, self._package)

    def subscribe(self, on_news: Callable[[Collection[str]], None], on_progress: Callable[[str, str], None]) -> None:  # noqa: ARG002 - a submit is a few requests
        """Have a function called when there is something new."""
        self._on_news = on_news

    def probe(self) -> Probe:
        """Usable when all steps before a trial go well."""
        last = CheckStep("", "", True, "")
        for step in self._service.check_steps():
            last = step
        return Probe(last.is_good, last.text.splitlines()[0].rstrip(".") + ".", is_lasting=False)

    def check_steps(self) -> Iterator[CheckStep]:
        """Check step by step, from the address to what a trial needs there."""
        return self._service.check_steps()

    def discover(self) -> Inventory:
        """Return the nodes of the service."""
        return self._service.discover()

    def _package(self, trial: TrialSpec) -> TrialPackage:
        return self._packer.pack(trial, {**self._profile.options, **trial.options})

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the requests that a submit makes."""
        return self._service.render(self._package(trial), placement)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial; twice is once."""
        package = self._package(trial)
        data: JsonObject = {"name": package.name, "fetch_limit_bytes": trial.fetch_limit_bytes}
        if isinstance(self._service, ReusingService) and package.nodes == 1:
            data = {**data, POOLED: True}
        if package.nodes > 1:
            workers = trial.resources.workers_per_node
            data = {**data, "nodes": package.nodes, "workers": workers, "elastic": trial.elastic}
            secrets = {**secrets, wire.TOKEN_VARIABLE: self._token(trial)}
        ref = JobRef(self.name, trial.job_id, data)
        job = self._job(ref)
        if job.settled() is not None:
            return ref
        try:
            self._service.submit(package, placement, secrets)
        except AnswerLostError as error:
            raise SubmitUnknownError(error.found, error.expected, error.action) from error
        self._follower.track(job)
        return ref

    def _token(self, trial: TrialSpec) -> str:
        """Return what the nodes of a trial know each other by: the same however often it is submitted."""
        folder = collected_folder(self._context.home, trial.job_id, PLACE)
        files.make_directories(folder)
        draft = folder / new_name(_TOKEN)
        wire.write_atomically(str(draft), token_hex(16).encode())
        with contextlib.suppress(FileExistsError):
            (folder / _TOKEN).hardlink_to(draft)
        draft.unlink()
        return (folder / _TOKEN).read_text(encoding="ascii")

    def _job(self, ref: JobRef) -> ServiceJob:
        known = self._follower.known(ref.job_id)
        if known is not None:
            return known
        return ServiceJob(ref, CollectedTrial(collected_folder(self._context.home, ref.job_id, PLACE), nodes_of(ref)))

    def _tracked(self, ref: JobRef) -> ServiceJob:
        job = self._job(ref)
        return self._follower.track(job) if job.settled() is None and ref.data else job

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the states as they are known here; no request of its own."""
        return list(map(self._status, refs))

    def _status(self, ref: JobRef) -> JobStatus:
        if not ref.data:
            return JobStatus(ref, TrialState.LOST, f"Nothing is known of job {ref.job_id} here: it was never started.")
        job = self._tracked(ref)
        if (final := job.settled()) is not None:
            return judging.final(ref, final)
        if job.status() is not None:
            known = judging.going_on(ref, job.statuses())
        else:
            is_over = job.is_over() or job.state is None
            known = JobStatus(ref, TrialState.PREPARING, "" if is_over else cast("ServiceState", job.state).reason)
        if job.fault:
            return replace(known, reason="", doubt=job.fault.rstrip("."), unreachable=True)
        return known

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Return what has come of the streams."""
        return [read_stream(self._tracked(cursor.ref).collected, cursor) for cursor in cursors]

    def directory_of(self, ref: JobRef) -> ServiceDirectory:
        """Return the directory of a trial: in its job while that runs, as collected afterwards."""
        return ServiceDirectory(self._service, self._follower, self._tracked(ref))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:  # noqa: ARG002 - only a job can look
        """Return none: what a job sees is known in the job alone, and its trial says what it lacks."""
        return []

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the trial: its supervisor first, which proves it, then its job."""
        if not ref.data:
            return CancelReceipt(note="it was never started")
        begun_s = time.monotonic()
        job = self._tracked(ref)
        if job.final is not None:
            return judging.receipt(job.final, 0.0, f"it had ended before: {job.final['state']}")
        job.is_cancelled = True
        note = self._end(job, grace_s)
        if job.final is None:
            self._follower.end(job, judging.cancelled(job.status()))
        return judging.receipt(cast("Status", job.final), time.monotonic() - begun_s, note)

    def _end(self, job: ServiceJob, grace_s: float) -> str:
        """Ask the supervisor to end its processes, then have the job ended; return what is to be said of that."""
        self._follower.wait_known(job, SETTLE_S)
        if job.state is None:
            raise BackendUnavailableError(f"{job.ref.job_id} cannot be cancelled now: {job.fault}", "", "Try it again.")
        if job.status() is not None and not job.is_over():
            try:
                self.put(job.ref, wire.CANCEL_FILE, _cancel_request(grace_s))
                self._follower.wait_final(job, grace_s + SETTLE_S)
            except BackendUnavailableError:
                raise
            except BackendError:
                pass  # it has ended meanwhile, or cannot be asked: then the service ends it
        if job.final is not None and job.is_over():
            return ""
        note = self._service.stop(job.ref, job.state)
        if not note and not self._follower.wait_over(job, _STOPPED_S):
            raise BackendError(
                f"The job {job.name} of {job.ref.job_id} was stopped, but has not ended yet.", "", "It is tried again."
            )
        self._follower.wait_final(job, self._service.settle_s + 1.0)
        return note

    def experiments_there(self) -> Mapping[str, int]:
        """Return the experiments that the service's storage has something of, with the bytes of each."""
        return self._service.experiments_there(self._packer.home)

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Remove what the service's storage has of these experiments."""
        self._service.remove_experiments(self._packer.home, experiments)

    def close(self) -> None:
        """Follow no more; jobs go on."""
        self._follower.close()


def _cancel_request(grace_s: float) -> bytes:
    return f'{{"grace_s": {grace_s}, "reason": "{judging.CANCELLED}"}}'.encode()
