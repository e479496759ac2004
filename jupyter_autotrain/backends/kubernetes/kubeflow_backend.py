"""Trials as objects of Kubeflow's operators: which of them, the cluster decides by what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access import credentials
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, TrialNeeds
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.session import LoadAccess
from jupyter_autotrain.backends.kubernetes.workloads import kubeflow_choice
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import PyTorchJobWorkload
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec

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
        return kubeflow_choice.choose(self._served if is_there else None, options, needs)

    def workload_of(self, ref: JobRef) -> Workload:
        """Return the kind that is noted in the reference."""
        if not ref.data:  # it was never started, and no object is looked for
            return PyTorchJobWorkload()
        return kubeflow_choice.of_kind(str(ref.data.get("kind")), str(ref.data.get("version")))
