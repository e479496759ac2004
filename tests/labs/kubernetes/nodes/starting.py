"""Start of the containers of pods on a node."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.nodes import hosts, quantities, variables
from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.nodes.images import Images, Program
from tests.labs.kubernetes.nodes.runtime.container import StartRequest
from tests.labs.kubernetes.nodes.runtime.root import Mount
from tests.labs.kubernetes.nodes.runtime_process import RuntimeProcess
from tests.labs.kubernetes.nodes.sandbox import Sandbox
from tests.labs.kubernetes.nodes.variables import ConfigError
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.labs.kubernetes.validation.quantities import amount


@dataclass(slots=True)
class NodeServices:
    """Services that the kubelet of a node works with.

    Attributes:
        name: Of the node.
        address: Of the node.
        store: The objects of the cluster.
        images: What can be pulled.
        folder: Of the node's pods.
        shared: Of claims and servers of the whole cluster.
        scratch: The node's memory, as the node sees it.
        gpu_resource: The name of its fake GPUs.
        log_limit_bytes: A container's log is rotated when it is larger.
        first_backoff_s: Before a container is started for the third time; then twice as long each time.
        service_account: The files of a pod's service account.
        cgroup_version: Under 1 the kernel ends one process of a container that is out of memory, and not all.
    """

    name: str
    address: str
    store: ObjectStore
    images: Images
    folder: Path
    shared: Path
    scratch: str
    gpu_resource: str
    log_limit_bytes: int
    first_backoff_s: float
    service_account: Callable[[Json], Mapping[str, str]]
    cgroup_version: int = 2


class ContainerStarter:
    """Starts containers on one node; what stands in the way is told as their state.

    Args:
        services: Of the node.
        runtime: Its containers.
        ended: Called in the loop's thread when a program of the double has ended: with the run's id and its exit code.
    """

    def __init__(self, services: NodeServices, runtime: RuntimeProcess, ended: Callable[[str, int], None]) -> None:
        self._services = services
        self._runtime = runtime
        self._ended = ended
        self._events = EventRecorder(services.store, "kubelet", services.name)
        self.first_backoff_s = services.first_backoff_s

    def clock(self) -> float:
        """Return the time that objects are stamped with."""
        return self._services.store.clock()

    def tell(self, pod: Json, reason: str, message: str, kind: str = "Normal") -> None:
        """Write an event of a pod."""
        self._events.record(pod, reason, message, kind)

    def tell_mount_failure(self, pod: Json, message: str) -> None:
        """Tell that a volume cannot be made yet."""
        self.tell(pod, "FailedMount", f"MountVolume.SetUp failed for {message}", "Warning")

    def tell_backoff(self, pod: Json, run: ContainerRun, name: str) -> None:
        """Tell that a container waits before it is started again."""
        self.tell(pod, "BackOff", f"Back-off restarting failed container {run.name} in pod {name}", "Warning")

    def signal(self, run: ContainerRun, number: int) -> None:
        """Send a signal to a container."""
        self._runtime.signal(run.run_id, number)

    def ask_to_end(self, pod: Json, run: ContainerRun) -> None:
        """Ask a container to end."""
        self.signal(run, signal.SIGTERM)
        self.tell(pod, "Killing", f"Stopping container {run.name}")

    def start(self, pod: Json, run: ContainerRun, sandbox: Sandbox) -> bool:
        """Start a container; False: not now, and its state says why."""
        policy = run.spec.get("imagePullPolicy", "IfNotPresent")
        refusal = self._services.images.refusal(run.spec.get("image", ""), policy)
        if refusal is not None:
            self._show_pull_failure(pod, run, *refusal)
            return False
        program = self._services.images.program(run.spec.get("image", ""))
        try:
            request = self._request(pod, run, sandbox, program)
        except ConfigError as error:
            run.wait("CreateContainerConfigError", str(error))
            self.tell(pod, "Failed", f"Error: {error}", "Warning")
            return False
        self._begin(pod, run, sandbox)
        request["id"] = run.run_id
        request["log"] = run.log
        run.environment = request["environment"]
        if program:
            self._run_program(program, pod, run, request["mounts"])
        else:
            self._runtime.start(request)
        return True

    def _begin(self, pod: Json, run: ContainerRun, sandbox: Sandbox) -> None:
        image = run.spec.get("image", "")
        if not run.pulled:
            told = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self.tell(pod, "Pulled", told)
        run.pulled = True
        if run.begun_at:
            run.restarts += 1
            run.previous_log = run.log
            run.wait("ContainerCreating")
        run.run_id = f"{sandbox.uid}-{run.name}-{run.restarts}"
        log = self._services.folder / "logs" / sandbox.uid / run.name / f"{run.restarts}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        run.log = str(log)
        run.begun_at = time.monotonic()

    def _show_pull_failure(self, pod: Json, run: ContainerRun, reason: str, message: str) -> None:
        waiting = run.state.get("waiting", {}).get("reason")
        image = run.spec.get("image", "")
        if reason == "ErrImagePull" and waiting in ("ErrImagePull", "ImagePullBackOff"):
            run.wait("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {message}')
            self.tell(pod, "BackOff", f'Back-off pulling image "{image}"')
            self.tell(pod, "Failed", "Error: ImagePullBackOff", "Warning")
            return
        run.wait(reason, message)
        if reason == "InvalidImageName":
            self.tell(pod, "InspectFailed", f'Failed to apply default image tag "{image}": {message}', "Warning")
        else:
            self.tell(pod, "Failed", f'Failed to pull image "{image}": {message}', "Warning")
        self.tell(pod, "Failed", f"Error: {reason}", "Warning")

    def _request(self, pod: Json, run: ContainerRun, sandbox: Sandbox, program: Program | None) -> StartRequest:
        services = self._services
        spec = run.spec
        shown = pod | {"status": {**pod.get("status", {}), **_addresses(sandbox.address, services.address)}}
        defaults = services.images.environment | {"HOSTNAME": hosts.hostname_of(pod)}
        if sandbox.gpus and services.gpu_resource in quantities.container_requests(spec):
            defaults["NVIDIA_VISIBLE_DEVICES"] = ",".join(map(str, sandbox.gpus))
        environment = variables.Environment(services.store, shown).of(spec, defaults)
        argv = [variables.expand(part, environment) for part in (*spec.get("command", ()), *spec.get("args", ()))]
        if not argv and not program:
            raise ConfigError("no command specified")
        limits = spec.get("resources", {}).get("limits", {})
        memory = amount(limits.get("memory", 0))
        user, group = _identity(pod, spec)
        return StartRequest(
            id="", pod=sandbox.uid, address=sandbox.address, hostname=hosts.hostname_of(pod), argv=argv,
            environment=environment, folder=spec.get("workingDir") or "/",
            mounts=[*sandbox.volumes.mounts(spec, environment), *self._own_mounts(pod, run, sandbox)],
            user=user, group=group, read_only=spec.get("securityContext", {}).get("readOnlyRootFilesystem", False),
            log="", log_limit_bytes=services.log_limit_bytes, memory_bytes=int(memory),
            kills_all=services.cgroup_version > 1, watch_storage="ephemeral-storage" in limits,
        )  # fmt: skip

    def hosts_file(self, uid: str) -> Path:
        """Return what a pod sees as /etc/hosts."""
        return self._services.folder / "system" / uid / "hosts"

    def _own_mounts(self, pod: Json, run: ContainerRun, sandbox: Sandbox) -> list[Mount]:
        folder = self._services.folder / "system" / sandbox.uid
        folder.mkdir(parents=True, exist_ok=True)
        hosts_file = self.hosts_file(sandbox.uid)
        if not hosts_file.exists():
            hosts_file.write_text(hosts.own_lines(pod, sandbox.address))
        message = folder / f"{run.name}.message"
        message.write_bytes(b"")
        message.chmod(0o666)
        resolver = folder / "resolv.conf"
        resolver.write_text("# no name server: then 127.0.0.1 is asked, where a name is refused at once\n")
        found = {
            "/etc/hosts": hosts_file, "/etc/resolv.conf": resolver,
            run.spec.get("terminationMessagePath", "/dev/termination-log"): message,
        }  # fmt: skip
        account = self._services.service_account(pod)
        if account:
            found["/var/run/secrets/kubernetes.io/serviceaccount"] = _written(folder / "account", account)
        return [
            Mount(source=str(source), target=target, read_only=False, made_by_node=False)
            for target, source in found.items()
        ]

    def _run_program(self, program: Program, pod: Json, run: ContainerRun, mounts: list[Mount]) -> None:
        run_id = run.run_id
        run.state = {"running": {"startedAt": stamp(self.clock())}}
        Path(run.log).touch()
        folders = {mount["target"]: mount["source"] for mount in mounts}

        def work() -> None:
            self._ended(run_id, program(pod, run.spec, folders))

        threading.Thread(target=work, name=f"program-{run.name}", daemon=True).start()

    def message_of(self, run: ContainerRun, sandbox: Sandbox, code: int) -> str:
        """Return the termination message of a container that has ended."""
        path = self._services.folder / "system" / sandbox.uid / f"{run.name}.message"
        text = path.read_bytes()[:4096].decode(errors="replace") if path.exists() else ""
        if text or code == 0 or run.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return text
        lines = Path(run.log).read_text(errors="replace").splitlines()[-80:]
        return "\n".join(line.split(" ", 3)[-1] for line in lines)[-2048:]


def _written(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def _addresses(address: str, host_address: str) -> Json:
    return {"podIP": address, "podIPs": [{"ip": address}], "hostIP": host_address}


def _identity(pod: Json, container: Json) -> tuple[int, int]:
    """Return the user and group that a container runs as."""
    context = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    user = context.get("runAsUser") or 0
    if context.get("runAsNonRoot") and user == 0:
        raise ConfigError("container has runAsNonRoot and image will run as root")
    return user, context.get("runAsGroup") or 0
