"""A container of a pod over all its runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.labs.kubernetes.objects.values import Json

WAITING: Json = {"waiting": {"reason": "ContainerCreating"}}


@dataclass(slots=True)
class ContainerRun:
    """State of a container, as the kubelet knows it.

    Attributes:
        spec: As the pod has it.
        init: Whether it runs before the others.
        run_id: Of the run that exists now on the runtime; "" before the first, and while there is none.
        log: The path of the log of the present or last run.
        previous_log: That of the run before.
        restarts: How many runs there were before this one.
        begun_at: When the present run began, on the monotonic clock.
        retry_at: When it may be started again, on the monotonic clock.
        backoff_s: How long it waited before the present run.
        kill_at: When it is killed, having been asked to end; on the monotonic clock.
        written_bytes: What it wrote to its own file system.
        pulled: Whether its image is on the node.
        runtime_pid: Its first process, as the node numbers it.
        environment: Of its first process.
    """

    spec: Json
    init: bool
    state: Json = field(default_factory=lambda: dict(WAITING))
    last_state: Json = field(default_factory=dict)
    run_id: str = ""
    log: str = ""
    previous_log: str = ""
    restarts: int = 0
    begun_at: float = 0.0
    retry_at: float = 0.0
    backoff_s: float = 0.0
    kill_at: float | None = None
    written_bytes: int = 0
    pulled: bool = False
    runtime_pid: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return str(self.spec["name"])

    @property
    def is_sidecar(self) -> bool:
        """Return whether it is an init container that goes on beside the others."""
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def is_live(self) -> bool:
        """Return whether there is a process, or is about to be one."""
        return bool(self.run_id)

    @property
    def running(self) -> bool:
        """Return whether its process runs."""
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """Of the run that has ended last; None: it runs, or has not run."""
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated["exitCode"])

    def wait(self, reason: str, message: str = "") -> None:
        """Note that it is not running, for a reason."""
        if "terminated" in self.state:
            self.last_state = self.state
        waiting = {"reason": reason}
        self.state = {"waiting": waiting | ({"message": message} if message else {})}

    def start_failure(self, message: str) -> str:
        """Return what the runtime says when its process could not be started."""
        if "No such file" in message:
            message = f'exec: "{self.spec.get("command", [""])[0]}": executable file not found in $PATH'
        return (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            f"failed: unable to start container process: error during container init: {message}: unknown"
        )

    def status(self) -> Json:
        """As `containerStatuses` lists it."""
        ended_well = self.init and not self.is_sidecar and self.exit_code == 0
        return {
            "name": self.name,
            "image": self.spec.get("image", ""),
            "imageID": f"double://{self.spec.get('image', '')}" if self.begun_at else "",
            "containerID": f"double://{self.run_id}" if self.run_id else "",
            "ready": self.running or ended_well,
            "started": self.running,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last_state,
        }
