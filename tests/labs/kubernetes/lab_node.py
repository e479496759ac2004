"""A node of the lab's cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.labs.kubernetes.controllers.loop import ControlLoop
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.nodes.allocation import Allocation
from tests.labs.kubernetes.nodes.images import Images
from tests.labs.kubernetes.nodes.kubelet import Kubelet
from tests.labs.kubernetes.nodes.runtime.container import NodeSettings
from tests.labs.kubernetes.nodes.starting import NodeServices
from tests.labs.kubernetes.objects.resources import NODES
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Properties of a node of the lab.

    Attributes:
        cpus: How many CPUs, as pods request them.
        memory: How much memory, as a quantity.
        gpus: How many fake GPUs.
        gpu_resource: How pods request them.
        pods: How many pods at most.
        labels: Besides those that every node has.
        log_limit_bytes: A container's log is rotated when it is larger.
        first_backoff_s: Before a container or the pod of a Job is started again; then twice as long each time.
        grace_s: After how long without a sign the node is lost.
        eviction_s: How long after that its pods are deleted.
    """

    cpus: float = 4
    memory: str = "8388608Ki"  # 8Gi as a kubelet writes it
    gpus: int = 4
    gpu_resource: str = "nvidia.com/gpu"
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    log_limit_bytes: int = 10 * 1024 * 1024
    first_backoff_s: float = 0.5
    grace_s: float = 1.0
    eviction_s: float = 2.0


@dataclass(frozen=True, slots=True)
class LabParts:
    """Parts that all nodes of a lab have in common.

    Attributes:
        folder: Of the lab.
        store: The objects of the cluster.
        loop: All controllers.
        images: What can be pulled.
        network_pid: A process in the cluster's network.
        hidden: Folders of this machine that containers see empty.
        shown: Folders of this machine that containers see, wherever they lie.
        empty: Folders that are empty though they are in shown ones.
    """

    folder: Path
    store: ObjectStore
    loop: ControlLoop
    images: Images
    network_pid: int
    hidden: list[str]
    shown: list[str]
    empty: list[str]


class LabNode:
    """One node; its pods run on it as processes."""

    def __init__(self, lab: LabParts, number: int, options: NodeOptions) -> None:
        self.name = f"n{number}"
        self.address = f"10.80.0.{10 + number}"
        self._lab = lab
        folder = lab.folder / self.name
        scratch = folder / "scratch"
        scratch.mkdir(parents=True, mode=0o755)
        services = NodeServices(
            name=self.name, address=self.address, store=lab.store, images=lab.images, folder=folder,
            shared=lab.folder / "shared", scratch=str(scratch), gpu_resource=options.gpu_resource,
            log_limit_bytes=options.log_limit_bytes, first_backoff_s=options.first_backoff_s,
            service_account=lambda _: {},
        )  # fmt: skip
        settings = NodeSettings(scratch=str(scratch), hidden=lab.hidden, shown=lab.shown, empty=lab.empty)
        self._create_object(options)
        self.kubelet = Kubelet(services, lab.loop, lab.network_pid, settings, Allocation(number, options.gpus))
        lab.loop.add(self.kubelet)

    def _create_object(self, options: NodeOptions) -> None:
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **(
                {"nvidia.com/gpu.product": "NVIDIA-Double-80GB", "nvidia.com/gpu.memory": "81920"}
                if options.gpus
                else {}
            ),
            **options.labels,
        }
        if options.gpus:
            labels |= {"nvidia.com/gpu.product": "NVIDIA-Double-80GB", "nvidia.com/gpu.memory": "81920"}
        self._lab.store.create(NODES, "", {"metadata": {"name": self.name, "labels": labels}, "spec": {}})
        amounts = {"cpu": f"{options.cpus:g}", "memory": options.memory, "pods": str(options.pods)}
        amounts["ephemeral-storage"] = "100Gi"
        if options.gpus:
            amounts[options.gpu_resource] = str(options.gpus)
        ready: Json = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        ready |= {"message": "kubelet is posting ready status", "lastTransitionTime": stamp(self._lab.store.clock())}
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": self.address}, {"type": "Hostname", "address": self.name}],
            "conditions": [ready],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "operatingSystem": "linux", "architecture": "amd64"},
        }
        self._lab.store.patch(NODES, "", self.name, {"status": status}, subresource="status")

    def _notice(self) -> None:
        self._lab.loop.call(lambda: self._lab.loop.look_again(NODES, ("", self.name)))

    def fail(self) -> None:
        """Take it away: its processes end, and nobody says so."""
        self.kubelet.fail()
        self._notice()

    def recover(self) -> None:
        """Bring it back."""
        self.kubelet.recover()
        self._notice()
