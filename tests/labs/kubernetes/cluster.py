"""A Kubernetes cluster on this machine, whose pods are real processes in namespaces of their own.

It ends with the process that made it, killed or not: each node is a process that ends when its standard input closes,
and the kernel ends all that runs in its namespaces. Known differences from a real cluster:

- Images are names: every container has the programs of this machine, under a private overlay; `KubernetesLab.images`
  says which cannot be pulled. There is no entry point: a container without command and args is refused.
- CPU limits are not enforced. Memory limits are: resident memory is sampled ten times a second, and the container's
  processes are killed (`OOMKilled`) when it is above; a container that allocates faster gets further. Ephemeral
  storage is sampled twice a second, real kubelets do it every ten seconds.
- GPUs are numbers: `NVIDIA_VISIBLE_DEVICES` is set, there is no device.
- Names of Services and pods are lines of /etc/hosts, which follow the pods within a moment. A Service has no address
  of its own: its name resolves to the pods behind it. Network policies and node ports do not exist.
- Back-off before a restart begins with `first_backoff_s` (real: 10 s), a lost node is noticed after `grace_s`
  (real: 50 s), its pods are deleted after their tolerations' time, by default `eviction_s` (real: 300 s).
- A log is rotated as soon as it is larger than its limit (real: looked at every 10 s), and old files are not
  compressed.
- Volumes of ConfigMaps and Secrets do not follow later changes. All persistent volume claims are bound at once unless
  their class is unknown, and are folders: sizes are not enforced. NFS and Azure files are folders of the lab.
- Pods get no token of their service account, and no variables of Services.
- A node that comes back has forgotten its pods: those that ran there fail, whatever their restart policy.
- Sidecars (init containers that are restarted always) are asked to end together, not in reverse order.
- Probes, lifecycle hooks, user namespaces, capabilities, seccomp, fsGroup and SELinux options are accepted and have no
  effect. runAsUser, runAsGroup, runAsNonRoot and readOnlyRootFilesystem have.
- Pod affinity, topology spread, resource claims (DRA) and volume topology are not looked at by the scheduler.
- Of Kueue there is admission by the quota of a ClusterQueue, of Volcano gangs by `minMember`: no fair sharing, no
  borrowing, no preemption among queues.
- One thread runs all controllers: what races on a real cluster happens here in some order, quickly.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import jupyter_autotrain
from jupyter_autotrain.testing.bundles import wait_until
from tests.labs import namespaces
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.adaptdl.controller import AdaptDLController
from tests.labs.kubernetes.adaptdl.supervisor import AdaptDLSupervisor
from tests.labs.kubernetes.controllers.claims import ClaimController
from tests.labs.kubernetes.controllers.framework import FrameworkController
from tests.labs.kubernetes.controllers.framework_barrier import IMAGE as BARRIER_IMAGE
from tests.labs.kubernetes.controllers.framework_barrier import FrameworkBarrier
from tests.labs.kubernetes.controllers.garbage_collector import GarbageCollector
from tests.labs.kubernetes.controllers.job import JobController
from tests.labs.kubernetes.controllers.loop import Controller, ControlLoop
from tests.labs.kubernetes.controllers.ttl import TtlController
from tests.labs.kubernetes.lab_node import LabNode, LabParts, NodeOptions
from tests.labs.kubernetes.nodes.container_access import ContainerAccess
from tests.labs.kubernetes.nodes.hosts_files import HostsFiles
from tests.labs.kubernetes.nodes.images import Images
from tests.labs.kubernetes.nodes.node_lifecycle import NodeLifecycle, PodCleaner
from tests.labs.kubernetes.nodes.scheduler import Scheduler
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import SERVICE_ACCOUNTS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.queues import kueue, volcano
from tests.labs.kubernetes.queues.kueue import KueueController
from tests.labs.kubernetes.queues.volcano import VolcanoScheduler
from tests.labs.kubernetes.server.api_server import ApiServer
from tests.labs.kubernetes.store.object_store import ObjectStore

_BEGIN = """
ip link set lo up
ip link add br0 type bridge
ip addr add 10.80.0.1/16 dev br0
ip link set br0 up
echo ready
exec cat >/dev/null
"""
_TRY = """
mount -t tmpfs scratch /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay /mnt/root -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work
"""
_HIDDEN = ("/tmp", "/var/tmp", "/root", "/home", "/mnt")
_KEPT = (SERVICE_ACCOUNTS.key,)  # in every namespace
_PROGRAMS = ("ip", "unshare", "nsenter", "env")
# Controllers of custom kinds, made with the store and the loop.
CONTROLLERS: tuple[Callable[[ObjectStore, ControlLoop], Controller], ...] = (
    *kubeflow.CONTROLLERS,
    AdaptDLController,
    FrameworkController,
)


def missing() -> str:
    """Why there can be no cluster on this machine; "" when there can be one."""
    if os.geteuid() != 0:
        return "pods in namespaces need root"
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=namespaces.search_path()) is None]
    if lacking:
        return f"pods in namespaces need {', '.join(lacking)}"
    command = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-ec", _TRY)
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces are not allowed here: {tried.stderr.strip()}"


class KubernetesLab:
    """A cluster.

    Args:
        folder: An empty folder for logs, volumes, certificates.
        nodes: How many nodes, named n1 and so on.
        options: What each has.
        controllers: Further ones, made with the store and the loop.
        without: Of `CONTROLLERS`, those that are left out.

    Attributes:
        api: The API server.
        kubeconfig: Of its administrator.
        store: All objects.
        loop: All controllers.
        images: What can be pulled.
        nodes: By name.
        access: Logs of containers and processes in them.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 2,
        *,
        options: NodeOptions | None = None,
        controllers: Sequence[Callable[[ObjectStore, ControlLoop], Controller]] = (),
        without: Collection[Callable[[ObjectStore, ControlLoop], Controller]] = (),
    ) -> None:
        self.folder = folder
        self.store = ObjectStore()
        self.loop = ControlLoop(self.store)
        self.images = Images()
        self.nodes: dict[str, LabNode] = {}
        self._network = namespaces.begin(("unshare", "--net", "sh", "-c", _BEGIN))
        self._supervisor: AdaptDLSupervisor | None = None
        own = [make for make in CONTROLLERS if make not in without]
        try:
            self._begin(nodes, options or NodeOptions(), (*own, *controllers))
        except BaseException:
            self.close()
            raise

    def _begin(
        self,
        nodes: int,
        options: NodeOptions,
        controllers: Sequence[Callable[[ObjectStore, ControlLoop], Controller]],
    ) -> None:
        self.loop.add(Scheduler(self.store, self.loop))
        self.loop.add(JobController(self.store, self.loop, options.first_backoff_s))
        self.loop.add(TtlController(self.store, self.loop))
        self.loop.add(GarbageCollector(self.store, self.loop))
        self.loop.add(VolcanoScheduler(self.store, self.loop))
        self.loop.add(KueueController(self.store, self.loop))
        for make in controllers:
            self.loop.add(make(self.store, self.loop))
        parts = LabParts(
            folder=self.folder, store=self.store, loop=self.loop, images=self.images, network_pid=self._network.pid,
            hidden=list(_HIDDEN), shown=sorted({sys.prefix, sys.base_prefix}),
            empty=[str(Path(jupyter_autotrain.__file__).parent)],
        )  # fmt: skip
        self.images.programs[BARRIER_IMAGE] = FrameworkBarrier(self.store)
        if AdaptDLController in controllers:
            self._supervisor = AdaptDLSupervisor(self.store, self.inside)
        for number in range(1, nodes + 1):
            node = LabNode(parts, number, options)
            self.nodes[node.name] = node
        kubelets = {name: node.kubelet for name, node in self.nodes.items()}
        self.loop.add(HostsFiles(self.loop, kubelets))
        self.loop.add(
            NodeLifecycle(self.store, self.loop, kubelets, grace_s=options.grace_s, eviction_s=options.eviction_s)
        )
        self.loop.add(PodCleaner(self.store, self.loop))
        self.loop.add(ClaimController(self.store, self.loop))
        certificates = self.folder / "api"
        certificates.mkdir(mode=0o700)
        self.access = ContainerAccess(kubelets)
        self.api = ApiServer(self.store, certificates, self.access)
        self.loop.start()
        self.api.start()
        self.kubeconfig = self.api.kubeconfig()

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Put the calling thread, and what it starts, into the network of the pods; its address is 10.80.0.1."""
        with namespaces.inside_network(self._network.pid):
            yield

    def install_kueue(self, queue: str, quota: dict[str, str], namespace: str = "default") -> None:
        """Install Kueue with a LocalQueue; the quota is by resource."""
        kueue.install(self.store)
        kueue.make_queue(self.store, namespace, queue, quota)

    def install_volcano(self) -> None:
        """Install Volcano with its queue `default`."""
        volcano.install(self.store)

    def clear(self) -> None:
        """Delete all objects of all namespaces, bring the nodes and the API server back, and wait until all is gone."""
        for node in self.nodes.values():
            if not node.kubelet.alive:
                node.recover()
        self.images.missing.clear()
        self.api.recover()
        wait_until(self._is_empty, "objects that are gone")

    def _is_empty(self) -> bool:
        """Delete what there is, also what a controller was just making; whether there was nothing."""
        self.loop.settle()
        found = list(self._namespaced())
        for resource, metadata in found:
            with contextlib.suppress(ApiError):  # it has gone by itself
                self.store.delete(resource, metadata["namespace"], metadata["name"], grace_s=0)
        return not found

    def _namespaced(self) -> Iterator[tuple[Resource, Json]]:
        """Yield what there is in namespaces, but for what every namespace has."""
        for resource in self.store.resources:
            if resource.namespaced and resource.key not in _KEPT:
                for found in self.loop.objects(resource):
                    yield resource, found["metadata"]

    def close(self) -> None:
        """End everything; the folder stays to its owner."""
        self.loop.stop()
        for node in self.nodes.values():
            node.kubelet.close()
        if hasattr(self, "api"):
            self.api.stop()
        if self._supervisor is not None:
            self._supervisor.close()
        namespaces.end(self._network)
