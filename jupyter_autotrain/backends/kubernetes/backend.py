"""Trials on Kubernetes: each is an object of the cluster, whose pods run the supervisor of every other backend.

What a trial writes comes back in the logs of its pods, which are followed into the home while it runs; then its objects
are deleted. The states of all trials come from one watch per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.directories import TrialDirectories
from jupyter_autotrain.backends.kubernetes import leftovers, submitting
from jupyter_autotrain.backends.kubernetes.access import credentials
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.following.cancelling import Canceller
from jupyter_autotrain.backends.kubernetes.following.file_following import FileFollowers
from jupyter_autotrain.backends.kubernetes.following.job_tracking import known_status, status_of
from jupyter_autotrain.backends.kubernetes.following.pod_directory import PodDirectory
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.inventory import nodes
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.session import LoadAccess, Session
from jupyter_autotrain.backends.kubernetes.storage import trial_needs
from jupyter_autotrain.backends.kubernetes.submitting import Submitter, TrialPlan
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload, PooledJobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial, collected_folder
from jupyter_autotrain.backends.log_channel.log_reading import read_stream
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
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError, MissingExtraError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jupyter_autotrain.backends.kubernetes.previewing import TrialPreview


class KubernetesBackend(TrialDirectories):
    """Runs each trial as a Job; subclasses run it as an object of an operator.

    Args:
        profile: Its name and options.
        context: The home.
        load: Loads the access to a cluster by a kubeconfig and a context.
    """

    poll_interval = PollInterval(least_s=0.1, most_s=5.0)  # news are pushed
    operator_workload: Workload | None = None  # of a subclass whose trials are all of one kind

    def __init__(self, profile: Profile, context: BackendContext, load: LoadAccess = credentials.load) -> None:
        self.name = profile.name
        self.capabilities = Capabilities(
            multi_node=True, multi_worker=True, gpu_slots=True, limits_memory=True, limits_cpu=True, secrets=True,
            queues=True, pushes=True, keeps_output=False,
        )  # fmt: skip
        self._profile = profile
        self._context = context
        self._on_news: Callable[[Collection[str]], None] = lambda _job_ids: None
        self._session = Session(profile.options, context, lambda job_id: self._on_news([job_id]), load)
        self._followers = FileFollowers()

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Image, namespace, and what else a cluster's user expects."""
        from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import KubernetesOptions  # noqa: PLC0415 - pydantic is slow

        return KubernetesOptions

    def workload_for(self, trial: TrialSpec, options: JsonObject) -> Workload:
        """Return the kind of object that a trial becomes."""
        if self.operator_workload is not None:
            return self.operator_workload
        return PooledJobWorkload() if plain_job.is_for(trial, options) else JobWorkload()

    def workload_of(self, ref: JobRef) -> Workload:
        """Return the kind of object that a job is."""
        if self.operator_workload is not None:
            return self.operator_workload
        return PooledJobWorkload() if ref.data.get("pooled") else JobWorkload()

    def subscribe(self, on_news: Callable[[Collection[str]], None], on_progress: Callable[[str, str], None]) -> None:  # noqa: ARG002 - a submit is one request
        """Have a function called when there is something new."""
        self._on_news = on_news

    def probe(self) -> Probe:
        """Usable when the API server answers."""
        try:
            version = self._session.api.request("GET", "/version")
            return Probe(True, f"Kubernetes {version.get('gitVersion')} answers, namespace {self._session.namespace}.")
        except AutotrainError as error:
            is_lasting = not isinstance(error, BackendUnavailableError)
            remedy = f" {error.action}" if isinstance(error, MissingExtraError) else ""
            return Probe(False, error.found.splitlines()[0] + remedy, is_lasting=is_lasting)

    def discover(self) -> Inventory:
        """Return the nodes of the cluster, where they may be listed."""
        return nodes.discover(self._session.api, self._profile.options)

    def _plan(self, trial: TrialSpec, namespace: str) -> TrialPlan:
        options: JsonObject = {**self._profile.options, **trial.options}
        workload = self.workload_for(trial, options)
        return submitting.plan(trial, options, workload, self._session, self._context, namespace)

    @property
    def _preview(self) -> TrialPreview:
        from jupyter_autotrain.backends.kubernetes.previewing import TrialPreview  # noqa: PLC0415 - YAML is slow

        return TrialPreview(self._session, self._profile.options, self._context, self._plan)

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:  # noqa: ARG002 - the cluster places
        """Return the manifests, as YAML; needs no cluster."""
        return self._preview.submission(trial)

    def manifest_text(self, trial: TrialSpec) -> str:
        """Return all objects of a trial with its code, for kubectl."""
        return self._preview.text(trial)

    def check_trial(self, trial: TrialSpec) -> Sequence[str]:
        """Ask the cluster for the user's permissions and for the fields that it serves."""
        return self._preview.check(trial)

    def check_steps(self) -> Iterator[CheckStep]:
        """Check step by step, from the kubeconfig to what a trial needs in the cluster."""
        return self._preview.steps()

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:  # noqa: ARG002 - the cluster places
        """Make the objects of the trial; twice is once."""
        session = self._session
        plan = self._plan(trial, session.namespace)
        ref = plan.program.job_ref(self.name)
        job = self._job(ref)
        if job.final is not None:
            return ref
        trial_needs.send(plan.needs, trial, self._context, session.ways)
        try:
            with session.code.sent(plan.shared.values()):
                made = Submitter(session.api, session.namespace).submit(plan.program, plan.own, secrets)
                session.own_soon([plan.config_maps[name] for name in plan.shared], made)
        except ApiRefusedError as error:
            raise self._preview.refusal(trial, error) from error
        tracker = session.tracker
        tracker.view.objects(plan.program.workload.object_type).insert(made)
        tracker.track(job, is_new=True)
        return ref

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Return objects of this home in the namespace that none of these experiments needs."""
        return leftovers.find(self._session, experiments).names()

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Delete them."""
        return leftovers.remove(self._session.api, leftovers.find(self._session, experiments))

    def experiments_there(self) -> Mapping[str, int]:
        """Return those that have something in the storage of the profile."""
        return leftovers.stored_sizes(self._session, self._context.home)

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Delete what they have there."""
        leftovers.remove_stored(self._session, experiments)

    def _job(self, ref: JobRef) -> TrackedJob:
        """Return a job as it is known here; one that has not ended is not followed by that alone."""
        known = self._session.tracker.known(ref.job_id) if ref.data else None
        return self._untracked(ref) if known is None else known

    def _untracked(self, ref: JobRef) -> TrackedJob:
        """Return a job as the home has it; asks no cluster."""
        nodes = cast("int", ref.data.get("nodes") or 1)
        folder = collected_folder(self._context.home, ref.job_id, "kubernetes")
        job = TrackedJob(ref, self.workload_of(ref), CollectedTrial(folder, nodes))
        job.final = job.collected.final_status()
        return job

    def _tracked(self, ref: JobRef) -> TrackedJob:
        job = self._job(ref)
        if job.final is None and ref.data:
            return self._session.tracker.track(job)
        return job

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the states as the watches and what has come of the trials tell them; no request of its own."""
        return list(map(self._status, refs))

    def _status(self, ref: JobRef) -> JobStatus:
        if not ref.data:
            return JobStatus(ref, TrialState.LOST, f"Nothing is known of job {ref.job_id} here: it was never started.")
        try:
            return status_of(self._tracked(ref), ref, self._session.tracker)
        except BackendUnavailableError as error:
            return known_status(self._untracked(ref), ref, error.found.rstrip("."))

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Return what has come of the streams; a file in a folder of the trial is followed in its pod."""
        return list(map(self._read, cursors))

    def _read(self, cursor: Cursor) -> Chunk:
        job = self._tracked(cursor.ref)
        if "/" not in cursor.stream:
            return read_stream(job.collected, cursor)
        at = None if job.final is not None else PodDirectory(self._session.tracker, job).running_at()
        return Chunk(cursor, b"" if at is None else self._followers.read(self._session.api, at, cursor))

    def directory_of(self, ref: JobRef) -> PodDirectory:
        """Return the directory of a trial: in its pods, or collected from them."""
        return PodDirectory(self._session.tracker, self._tracked(ref))

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:  # noqa: ARG002 - only a pod can look
        """Return none: what a pod sees is known in the pod alone, and its trial says what it lacks."""
        return []

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the trial, and delete its objects."""
        if not ref.data:
            return CancelReceipt(note="it was never started")
        return Canceller(self._session.tracker).cancel(self._tracked(ref), grace_s)

    def close(self) -> None:
        """Give up the connections; trials go on."""
        self._followers.close()
        self._session.close()
