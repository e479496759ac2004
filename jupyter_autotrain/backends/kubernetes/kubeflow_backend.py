"""Trials as objects of Kubeflow's operators: which of them, the cluster decides by what it serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access import credentials
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, TrialNeeds
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType, Workload
from jupyter_autotrain.backends.kubernetes.session import LoadAccess
from jupyter_autotrain.backends.kubernetes.workloads import training_operator, training_runtimes
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import (
    PADDLEJOB,
    PYTORCHJOB,
    TFJOB,
    MPIJobWorkload,
    PyTorchJobWorkload,
    paddlejob,
    served_mpijob,
    tfjob,
)
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import Runtime, layout_of
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TRAINJOB, TrainJobWorkload
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel


class KubeflowBackend(KubernetesBackend):
    """Runs each trial as a TrainJob, PyTorchJob, MPIJob, TFJob or PaddleJob.

    Args:
        profile: Its name and options.
        context: The home.
        load: Reads the kubeconfig.
    """

    def __init__(self, profile: Profile, context: BackendContext, load: LoadAccess = credentials.load) -> None:
        super().__init__(profile, context, load)
        api = self._session.api
        self._served = ServedCluster(lambda path: api.request("GET", path), api.list)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, the kind of object, the runtime."""
        from jupyter_autotrain.backends.kubernetes.options.kubeflow_options import KubeflowOptions  # noqa: PLC0415 - pydantic is slow

        return KubeflowOptions

    def workload_for(self, trial: TrialSpec, options: JsonObject) -> Workload:
        """Return the newest kind that the cluster serves and can run the trial; without an answer, the newest there is.

        Raises:
            BackendError: The cluster serves none.
        """
        is_there = self._served.answers()
        namespace = self._session.namespace if is_there else ""
        needs = TrialNeeds(trial.launcher, trial.resources.nodes, trial.elastic, namespace)
        return choose(self._served if is_there else None, options, needs)

    def workload_of(self, ref: JobRef) -> Workload:
        """Return the kind that is noted in the reference."""
        if not ref.data:  # it was never started, and no object is looked for
            return PyTorchJobWorkload()
        return of_kind(str(ref.data.get("kind")), str(ref.data.get("version")))


# Which of the kinds a trial becomes: the newest that the cluster serves and that can run it


_OF_LAUNCHER = {"mpi": "MPIJob", "tensorflow": "TFJob", "paddle": "PaddleJob"}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A kind in one version, and what makes its workload on a server."""

    object_type: ObjectType
    on_server: Callable[[ServedCluster, JsonObject, TrialNeeds], Workload]
    assumed: Callable[[JsonObject], Workload]


def choose(served: ServedCluster | None, options: JsonObject, needs: TrialNeeds) -> Workload:
    """Return the workload for a trial.

    Args:
        served: The cluster; None: there is none, and the newest release of everything is assumed.
        options: Of `type: kubeflow`.
        needs: Of the trial.

    Raises:
        BackendError: The cluster serves no kind that can run it.
    """
    candidates = _candidates(str(options.get("kind") or ""), needs)
    if served is None:
        return candidates[0].assumed(options)
    faults = []
    for candidate in candidates:
        if not served.has(candidate.object_type):
            continue
        try:
            return candidate.on_server(served, options, needs)
        except BackendError as error:
            faults.append(error)
    if faults:
        raise faults[0]
    names = list(dict.fromkeys(candidate.object_type.kind for candidate in candidates))
    raise BackendError(
        f"The cluster serves none of these kinds: {', '.join(names)}.",
        "Kubeflow Trainer or its training operator was expected there.",
        "Have it installed, or use `type: kubernetes`, which needs nothing.",
    )


def of_kind(kind: str, version: str) -> Workload:
    """Return the workload that reads the state of an object that was made before.

    Raises:
        BackendError: No workload makes such objects.
    """
    for candidate in _ALL:
        if (candidate.object_type.kind, candidate.object_type.version) == (kind, version):
            return candidate.assumed({})
    known = [f"{candidate.object_type.kind} {candidate.object_type.version}" for candidate in _ALL]
    raise BackendError(f"{kind} {version} was found.", f"One of these was expected: {', '.join(known)}.", "")


def _candidates(kind: str, needs: TrialNeeds) -> Sequence[_Candidate]:
    """Best first. Only PyTorchJob makes a lost node of an elastic trial again."""
    if needs.elastic and not kind:
        kind = PYTORCHJOB.kind
    if kind:
        return [candidate for candidate in _ALL if candidate.object_type.kind == kind]
    first = (TRAINJOB.kind, _OF_LAUNCHER.get(needs.launcher, PYTORCHJOB.kind))
    return sorted(_ALL, key=lambda candidate: _place(candidate.object_type.kind, first))


def _place(kind: str, first: Sequence[str]) -> int:
    return first.index(kind) if kind in first else len(first)


def _trainjob(served: ServedCluster, options: JsonObject, needs: TrialNeeds) -> Workload:
    if needs.elastic:
        raise BackendError(
            "A TrainJob does not make a lost node again.",
            "A trial that is not elastic was expected.",
            "Leave `elastic:` out, or use `kind: PyTorchJob` where it is served.",
        )
    gang = str(options.get("scheduler") or "")
    runtimes = training_runtimes.installed(served, needs.namespace)
    runtime = training_runtimes.choose(runtimes, str(options.get("runtime") or ""), gang, needs)
    return TrainJobWorkload(runtime, layout_of(served.schema(TRAINJOB)))


def _assumed_trainjob(options: JsonObject) -> Workload:
    name = options.get("runtime")
    return TrainJobWorkload(Runtime(str(name))) if name else TrainJobWorkload()


def _same(make: Callable[[], Workload], object_type: ObjectType) -> _Candidate:
    """Return a kind that is the same on every server."""
    return _Candidate(object_type, lambda *_: make(), lambda _: make())


_ALL = (
    _Candidate(TRAINJOB, _trainjob, _assumed_trainjob),
    _same(PyTorchJobWorkload, PYTORCHJOB),
    _Candidate(training_operator.MPIJOB, lambda served, *_: served_mpijob(served), lambda _: MPIJobWorkload()),
    _same(training_operator.mpijob_v1, training_operator.MPIJOB_V1),
    _same(tfjob, TFJOB),
    _same(paddlejob, PADDLEJOB),
)
