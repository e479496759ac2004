"""The interface of a kind of object of the cluster, so that one backend runs trials as any of them.

A *workload* is the kind of object that a trial becomes: a Job, a PyTorchJob, a Framework. It is rendered from a pod
template that is the same for all kinds, and its state is read from the object and its pods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import naming

IMAGE = "python:3.12-slim"
PYTHON = "python3"
GPU_RESOURCE = "nvidia.com/gpu"
LINGER_S = 120.0
TTL_S = 3 * 86_400.0
START_TIMEOUT_S = 600.0
REUSE_IDLE_S = 60.0
TASK_ROLE = "worker"
BARRIER_IMAGE = "frameworkcontroller/frameworkbarrier"


CONTAINER = "trial"  # of the template; workloads whose controller wants another name rename it
VOLCANO = "volcano"  # the scheduler whose queues are PodGroups; every other queue is one of Kueue
# Variables of pods that a manifest sets where the controller of its kind sets none; see `NodeVariables`.
RANK_VARIABLE = "AUTOTRAIN_NODE_RANK"
OFFSET_VARIABLE = "AUTOTRAIN_NODE_RANK_OFFSET"
FIRST_ADDRESS_VARIABLE = "AUTOTRAIN_FIRST_ADDRESS"
_DEADLINE_MARGIN_S = 1800.0  # the supervisor keeps the limit, which begins when image and data are there


def deadline_s(timeout_s: float | None) -> int | None:
    """After how long the cluster ends what has no supervisor any more; None: never.

    Args:
        timeout_s: After how long the trial ends itself.
    """
    return None if timeout_s is None else int(timeout_s + _DEADLINE_MARGIN_S)


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A kind of object as the API serves it.

    Attributes:
        group: "" for the core group.
        version: As served, such as v1.
        plural: The name in paths, such as jobs.
        kind: The name in manifests, such as Job.
    """

    group: str
    version: str
    plural: str
    kind: str

    @classmethod
    def of(cls, manifest: JsonObject) -> ObjectType:
        """Return the type of an object, by the rule that its plural follows from its kind."""
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        kind = str(manifest["kind"])
        return cls(group, version, f"{kind.lower()}s", kind)

    @property
    def api_version(self) -> str:
        """As manifests say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the objects of a namespace ("": of the cluster, or of all namespaces), or of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        folder = f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"
        return f"{folder}/{name}" if name else folder


@dataclass(frozen=True, slots=True)
class NodeVariables:
    """The variables by which the controller of an object tells a pod which node of its trial it is.

    Attributes:
        rank: Holds the number of the pod among the nodes of the trial, from 0; "" where there is one pod.
        first_address: Holds the host name or address of node 0; "" where there is one pod.
        offset: Holds a number that is added to that of `rank`; "": none.
        count: Holds how many nodes there are now; "" where there are as many as the trial asks for.
        run: Holds how often all its pods were made anew; a trial goes on from its own checkpoints then.
        peers: How a pod finds the addresses of all nodes (`kubernetes_pod.peers`); "": by their names.
    """

    rank: str = ""
    first_address: str = ""
    offset: str = ""
    count: str = ""
    run: str = ""
    peers: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """A trial as its object is rendered from it.

    Attributes:
        name: Of the object; valid for its kind (`Workload.object_name`).
        namespace: Where it is made.
        labels: Of the object and of all its pods.
        annotations: Of the object and of all its pods.
        nodes: How many pods the trial has.
        min_nodes: With how many an elastic trial goes on.
        workers_per_node: How many ranks each pod starts.
        launcher: As `TrialSpec.launcher`.
        template: The pod template; its first container is named `CONTAINER`.
        options: Of the profile and the header's section, checked by the options model of the type.
        timeout_s: After how long the trial ends itself; None: never.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    nodes: int
    min_nodes: int
    workers_per_node: int
    launcher: str
    template: JsonObject
    options: JsonObject = field(default_factory=dict)
    timeout_s: float | None = None

    def metadata(self, name: str = "") -> JsonObject:
        """Return the metadata of an object of the trial.

        Args:
            name: Of the object; "": that of the trial's own one.
        """
        found: dict[str, JsonValue] = {
            "name": name or self.name, "namespace": self.namespace, "labels": dict(self.labels)
        }  # fmt: skip
        return {**found, "annotations": dict(self.annotations)} if self.annotations else found


class Obstacle(IntEnum):
    """An obstacle that keeps a trial from starting; a worse one is greater."""

    NONE = 0  # it goes on by itself: it is being started, or waits for its turn or for room that others use
    FAULT = 1  # waiting does not help, but somebody may mend it: `start_timeout` says for how long
    LASTING = 2  # its object is wrong, and cannot be changed


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The state of a trial, as its object and pods tell it.

    `state` is PREPARING, RUNNING or final; `reason` is in a user's words: before the end what the trial waits for, as
    the rest of a sentence that begins with the trial. `obstacle` says, of one that is PREPARING, whether to wait helps.
    """

    state: TrialState
    reason: str = ""
    obstacle: Obstacle = Obstacle.NONE


class Workload(ABC):
    """A kind of object that runs a trial. Stateless; everything is pure.

    Attributes:
        object_type: The kind.
        node_variables: What tells a pod its place among those of its trial.
        longest_name: How many characters a name may have, as pods and hosts append to it.
        deletes_pods_at_once: Its controller deletes pods as soon as they end: they linger until they are collected.
        rescales: Its controller ends pods and makes others while the trial runs: a pod's end is not the trial's.
    """

    object_type: ObjectType
    node_variables: NodeVariables
    longest_name: int
    deletes_pods_at_once = False
    rescales = False

    def object_name(self, job_id: str, home: str) -> str:
        """Return a name that its kind allows; the same for the same job, different for every other."""
        return naming.dns_label(job_id, home, self.longest_name)

    def manifest(self, request: WorkloadRequest, spec: JsonObject) -> JsonObject:
        """Return the object of a trial."""
        kind = self.object_type
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": request.metadata(), "spec": spec}

    @abstractmethod
    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the manifests in the order in which they are made; the object is the first, and owns the others."""

    @abstractmethod
    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Return the state of the trial of an object and its pods, of which some may not exist yet or any more."""


JOBS = ObjectType("batch", "v1", "jobs", "Job")
PODS = ObjectType("", "v1", "pods", "Pod")
CONFIG_MAPS = ObjectType("", "v1", "configmaps", "ConfigMap")
SECRETS = ObjectType("", "v1", "secrets", "Secret")
SERVICES = ObjectType("", "v1", "services", "Service")
CLAIMS = ObjectType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
POD_GROUP = ObjectType("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
EVENTS = ObjectType("", "v1", "events", "Event")
NODES = ObjectType("", "v1", "nodes", "Node")
TRIAL_TYPES = (
    JOBS,
    ObjectType("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
    ObjectType("kubeflow.org", "v2beta1", "mpijobs", "MPIJob"),
    *(
        ObjectType("kubeflow.org", "v1", f"{kind.lower()}s", kind)
        for kind in ("PyTorchJob", "MPIJob", "TFJob", "PaddleJob")
    ),
    ObjectType("adaptdl.petuum.com", "v1", "adaptdljobs", "AdaptDLJob"),
    ObjectType("frameworkcontroller.microsoft.com", "v1", "frameworks", "Framework"),
)
OWN_TYPES = (*TRIAL_TYPES, POD_GROUP, PODS, SERVICES, SECRETS, CLAIMS, CONFIG_MAPS)  # of which we make objects
NOT_SERVED_CODES = frozenset({403, 404, 405})  # no right to list a kind, or none that is served: we have made none
