"""Options that all types of Kubernetes backends have. They name objects of the cluster and files, never a secret."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.options.option_types import (
    Affinity,
    Key,
    Label,
    ObjectName,
    ObjectNames,
    ObjectPatch,
    PodPatch,
    SecurityContext,
    Tolerations,
    Word,
)
from jupyter_autotrain.backends.kubernetes.options.volume_options import StorageOptions, VolumeOptions
from jupyter_autotrain.header.document import UnfitError, resolve
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import AS_INTEGER, Duration, LocalPath, Size, Text

_PULL_POLICY = OneOf(
    ("Always", "IfNotPresent", "Never"), (("always", "Always"), ("ifnotpresent", "IfNotPresent"), ("never", "Never"))
)


def _several(value: object) -> object:
    return [value] if isinstance(value, dict | Section) else value


def _pods(value: object) -> object:
    found = resolve(value)
    return int(found) if isinstance(found, bool) else value


Volumes = Annotated[
    tuple[VolumeOptions, ...],
    BeforeValidator(_several, json_schema_input_type=VolumeOptions | list[VolumeOptions]),
]


class KubernetesOptions(Section):
    """Options of the Kubernetes backend."""

    header_keys: ClassVar[tuple[str, ...]] = (
        "service_account", "labels", "annotations", "node_selector", "tolerations", "affinity", "priority_class",
        "queue", "shared_memory", "gpu_resource", "gpu_product", "linger", "ttl", "start_timeout", "pod_patch", "patch",
    )  # fmt: skip

    # Keys of options and manifests whose text is the name of a Secret, a label, or a key of one.
    names_of_secrets: ClassVar[frozenset[str]] = frozenset({
        "secret", "image_pull_secrets", "secretName", "key", "topologyKey", "automountServiceAccountToken",
    })  # fmt: skip

    kubeconfig: LocalPath | None = Field(
        default=None, description="A kubeconfig in the place of your own.", examples=["./kubeconfig"]
    )
    context: Text | None = Field(
        default=None, description="The context of the kubeconfig; else its current one.", examples=["lab"]
    )
    namespace: ObjectName | None = Field(
        default=None, description="Where objects are made; else the context's namespace.", examples=["team-a"]
    )
    image: Text = Field(
        default=defaults.IMAGE,
        description="The container image where the header's `environment:` names none; Python 3.9 in it is enough.",
        examples=["pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"],
    )
    python: Text = Field(
        default=defaults.PYTHON, description="The interpreter in the image.", examples=["/opt/conda/bin/python"]
    )
    image_pull_secrets: ObjectNames = Field(
        default=(), description="Secrets with the logins of image registries.", examples=["[registry-login]"]
    )
    image_pull_policy: Annotated[str, _PULL_POLICY] | None = Field(
        default=None, description="When the image is pulled; the cluster's rule by default.", examples=["Always"]
    )
    service_account: ObjectName | None = Field(
        default=None, description="The service account of pods; without it they get no token.", examples=["trainer"]
    )
    labels: dict[Key, Label] = Field(
        default_factory=dict, description="Labels of all objects and pods.", examples=["{team: vision}"]
    )
    annotations: dict[Key, Word] = Field(
        default_factory=dict,
        description="Annotations of all objects and pods.",
        examples=["{sidecar.istio.io/inject: 'false'}"],
    )
    node_selector: dict[Key, Label] = Field(
        default_factory=dict, description="Labels that a node must have.", examples=["{pool: training}"]
    )
    tolerations: Tolerations = Field(
        default=(),
        description="Taints that pods tolerate, as `kubectl taint` writes them; that of GPUs is added.",
        examples=["['dedicated=ml:NoSchedule']"],
    )
    affinity: Affinity | None = Field(
        default=None,
        description="Affinity of pods, as in a manifest.",
        examples=["{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}"],
    )
    priority_class: ObjectName | None = Field(
        default=None, description="The priority class of pods.", examples=["low-priority"]
    )
    queue: ObjectName | None = Field(
        default=None,
        description="The queue: a LocalQueue of Kueue, or with `scheduler: volcano` one of Volcano.",
        examples=["team-a"],
    )
    scheduler: ObjectName | None = Field(
        default=None, description="The scheduler of pods; with volcano each trial is a PodGroup.", examples=["volcano"]
    )
    security_context: SecurityContext | None = Field(
        default=None,
        description="Security context of pods and containers, as in a manifest.",
        examples=["{runAsUser: 1000, fsGroup: 1000}"],
    )
    shared_memory: Size | None = Field(
        default=None, description="Size of /dev/shm, which workers of a DataLoader use.", examples=["8GB"]
    )
    volumes: Volumes = Field(
        default=(),
        description="Folders that trials see: a PVC, NFS, of the node, empty, a Secret or a ConfigMap.",
        examples=["[{path: /data, pvc: datasets, read_only: true}]"],
    )
    storage: StorageOptions | None = Field(
        default=None,
        description="Where code, data and results lie that do not fit into objects of the cluster (1 MiB).",
        examples=["{pvc: training}"],
    )
    data_cache_limit: Size = Field(
        default=DEFAULT_LIMIT_BYTES,
        description="How much data (`data:`) the storage keeps; the least recently used goes first.",
        examples=["500GB"],
    )
    gpu_resource: Word = Field(
        default=defaults.GPU_RESOURCE, description="The resource that is a GPU.", examples=["amd.com/gpu"]
    )
    gpu_product: Label | None = Field(
        default=None,
        description="The kind of GPU, by the node label nvidia.com/gpu.product.",
        examples=["NVIDIA-A100-SXM4-40GB"],
    )
    linger: Duration = Field(
        default=defaults.LINGER_S,
        description="How long at most a pod waits at its end for its files to be collected.",
        examples=["5m"],
    )
    ttl: Duration = Field(
        default=defaults.TTL_S,
        description="When the cluster deletes what has ended and was not collected.",
        examples=["1d"],
    )
    start_timeout: Duration = Field(
        default=defaults.START_TIMEOUT_S,
        description=(
            "How long a trial may be kept from starting by what waiting does not mend (no such image, volume or "
            "Secret, no node that fits), or try to get several nodes at once; queues and room that others use do not "
            "count."
        ),
        examples=["30m"],
    )
    reuse: Annotated[int, Field(ge=0, le=10_000), AS_INTEGER, BeforeValidator(_pods)] = Field(
        default=0,
        description="Trials run one after another in so many long-running pods at most; 0: each has pods of its own.",
        examples=["4"],
    )
    reuse_idle: Duration = Field(
        default=defaults.REUSE_IDLE_S,
        description="How long such a pod waits for another trial before it ends.",
        examples=["5m"],
    )
    pod_patch: PodPatch | None = Field(
        default=None,
        description="Merged into every pod template, lists by name; the trial's container is called trial.",
        examples=["{spec: {hostNetwork: true}}"],
    )
    patch: ObjectPatch | None = Field(
        default=None,
        description="Merged into the object last of all; it cannot remove what the trial needs.",
        examples=["{spec: {backoffLimit: 2}}"],
    )


def _none(value: object) -> object:
    if resolve(value) not in (0, False):
        raise UnfitError(
            "expected 0: an operator makes pods for one trial and ends them with it; with `type: kubernetes` in the "
            "profile, pods run trials one after another"
        )
    return 0


class OperatorOptions(KubernetesOptions):
    """Options of Kubernetes, as far as operators can have them."""

    reuse: Annotated[int, AS_INTEGER, BeforeValidator(_none)] = Field(
        default=0, description="0: an operator makes pods for each trial; `type: kubernetes` can reuse them."
    )
