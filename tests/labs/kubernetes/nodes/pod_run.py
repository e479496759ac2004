"""A pod on its node: which of its containers run, end, and run again."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.nodes import pod_status
from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.nodes.sandbox import Sandbox
from tests.labs.kubernetes.nodes.starting import ContainerStarter
from tests.labs.kubernetes.nodes.variables import ConfigError
from tests.labs.kubernetes.objects.values import Json

_RETRY_S = 0.5
_LONGEST_BACKOFF_S = 300.0
_FORGOTTEN_AFTER_S = 600.0  # a container that ran so long is started again at once


class PodRun:
    """One pod, from its arrival on the node to its end.

    Attributes:
        sandbox: What its containers share.
        done: Nothing of it runs, and nothing will.
        reason: Of its status: why the kubelet has ended it.
        message: The sentence to it.
    """

    def __init__(self, pod: Json, sandbox: Sandbox, starter: ContainerStarter) -> None:
        self.sandbox = sandbox
        self.done = False
        self.reason = ""
        self.message = ""
        self.extra_conditions: list[Json] = []
        self._starter = starter
        self._began = starter.clock()
        self._began_at = time.monotonic()
        self._stopping = False
        self._grace_s = 0.0
        spec = pod["spec"]
        self._policy = spec.get("restartPolicy", "Always")
        self.runs = [ContainerRun(item, init=True) for item in spec.get("initContainers", ())]
        self.runs += [ContainerRun(item, init=False) for item in spec["containers"]]

    @property
    def uid(self) -> str:
        """Of the pod."""
        return self.sandbox.uid

    @property
    def is_live(self) -> bool:
        """Return whether anything of it runs."""
        return any(run.is_live for run in self.runs)

    def run_of(self, name: str) -> ContainerRun | None:
        """Return a container by its name."""
        return next((run for run in self.runs if run.name == name), None)

    def stop(self, grace_s: float, reason: str = "", message: str = "") -> None:
        """End it: each process is asked to, and killed after a while."""
        soonest = time.monotonic() + grace_s
        for run in self.runs:
            if run.kill_at is not None:
                run.kill_at = min(run.kill_at, soonest)
        self._grace_s = grace_s if not self._stopping else min(grace_s, self._grace_s)
        self._stopping = True
        self.reason = self.reason or reason
        self.message = self.message or message

    def step(self, pod: Json) -> float | None:
        """Do what is to be done now; seconds until there may be more, None: when something happens."""
        if self.done:
            return None
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds")
        if pod["metadata"].get("deletionTimestamp") and (not self._stopping or grace_s < self._grace_s):
            self.stop(float(grace_s or 0))
        deadline_in = self._deadline_in(pod)
        if deadline_in is not None and deadline_in <= 0 and not self._stopping:
            message = "Pod was active on the node longer than the specified deadline"
            self.stop(self._own_grace_s(pod), "DeadlineExceeded", message)
        if self._stopping:
            return self._stop_all(pod)
        waits = [self._go_on(pod), deadline_in]
        return min((wait for wait in waits if wait is not None), default=None)

    @staticmethod
    def _own_grace_s(pod: Json) -> float:
        return float(pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _deadline_in(self, pod: Json) -> float | None:
        limit = pod["spec"].get("activeDeadlineSeconds")
        return None if limit is None else self._began_at + float(limit) - time.monotonic()

    def _stop_all(self, pod: Json) -> float | None:
        now = time.monotonic()
        waits = []
        for run in self.runs:
            if not run.is_live:
                continue
            if run.kill_at is None:
                run.kill_at = now + self._grace_s
                self._starter.ask_to_end(pod, run)
            if now >= run.kill_at:
                self._starter.signal(run, signal.SIGKILL)
            else:
                waits.append(run.kill_at - now)
        self.done = not self.is_live
        return min(waits, default=None)

    def _go_on(self, pod: Json) -> float | None:
        try:
            self.sandbox.volumes.prepare(pod)
        except ConfigError as error:
            self._starter.tell_mount_failure(pod, str(error))
            return _RETRY_S
        for run in self.runs:
            if not run.init or (run.exit_code == 0 and not run.is_sidecar):
                continue
            if run.exit_code is not None and not pod_status.will_run_again(run, self._policy):
                self._end_with_containers()
                return None
            wait = self._ensure(pod, run)
            if not (run.is_sidecar and run.running):
                return wait
        main = [run for run in self.runs if not run.init]
        waits = [self._ensure(pod, run) for run in main]
        if all(run.exit_code is not None and not pod_status.will_run_again(run, self._policy) for run in main):
            self._end_with_containers()
            return self._stop_all(pod) if self._stopping else None
        return min((wait for wait in waits if wait is not None), default=None)

    def _end_with_containers(self) -> None:
        if self.is_live:  # sidecars
            self.stop(2.0)
        else:
            self.done = True

    def _ensure(self, pod: Json, run: ContainerRun) -> float | None:
        """Have a container run, now or when its time has come."""
        if run.is_live or (run.exit_code is not None and not pod_status.will_run_again(run, self._policy)):
            return None
        wait = run.retry_at - time.monotonic()
        if wait > 0:
            self._show_backoff(pod, run)
            return wait
        if not self._starter.start(pod, run, self.sandbox):
            run.retry_at = time.monotonic() + _RETRY_S
            return _RETRY_S
        if run.restarts:
            self._lengthen_backoff(run)
        return None

    def _show_backoff(self, pod: Json, run: ContainerRun) -> None:
        if "terminated" not in run.state or run.backoff_s == 0:
            return
        name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({self.uid})"
        text = f"back-off {run.backoff_s:g}s restarting failed container={run.name} pod={name}"
        run.wait("CrashLoopBackOff", text)
        self._starter.tell_backoff(pod, run, name)

    def ended(self, run: ContainerRun, code: int, reason: str, message: str) -> None:
        """Take the end of a container's process, or that it could not be started (code 128)."""
        now = self._starter.clock()
        begun = run.state.get("running", {}).get("startedAt", stamp(now))
        terminated = {"exitCode": code, "reason": reason, "startedAt": begun, "finishedAt": stamp(now)}
        terminated["containerID"] = f"double://{run.run_id}"
        if message:
            terminated["message"] = message
        run.state = {"terminated": terminated}
        run.run_id = ""
        run.kill_at = None
        if time.monotonic() - run.begun_at > _FORGOTTEN_AFTER_S:
            run.backoff_s = 0.0
        run.retry_at = time.monotonic() + run.backoff_s

    def _lengthen_backoff(self, run: ContainerRun) -> None:
        """Let it wait longer the next time that it is started again."""
        first = self._starter.first_backoff_s
        run.backoff_s = min(max(run.backoff_s * 2, first), _LONGEST_BACKOFF_S)

    def status(self, pod: Json, host_address: str) -> Json:
        """Return the pod's status."""
        phase = pod_status.phase_of(self.runs, self._policy, stopping=self._stopping)
        if self.done and self.reason:
            phase = "Failed"
        found: Json = {
            "phase": phase,
            "conditions": pod_status.conditions(pod, self.runs, phase, self.extra_conditions, self._starter.clock()),
            "hostIP": host_address,
            "hostIPs": [{"ip": host_address}],
            "podIP": self.sandbox.address,
            "podIPs": [{"ip": self.sandbox.address}],
            "startTime": stamp(self._began),
            "containerStatuses": self._statuses([run for run in self.runs if not run.init]),
            "qosClass": pod_status.quality_of_service(pod),
        }
        initial = self._statuses([run for run in self.runs if run.init])
        found |= {"initContainerStatuses": initial} if initial else {}
        found |= {"reason": self.reason, "message": self.message} if self.done and self.reason else {}
        return found

    def _statuses(self, runs: Sequence[ContainerRun]) -> list[Json]:
        waiting: Json = {"waiting": {"reason": "PodInitializing"}}
        found = [run.status() for run in runs]
        if any(run.init and not run.is_sidecar and run.exit_code != 0 for run in self.runs):
            found = [entry | {"state": waiting} if self._untouched(entry) else entry for entry in found]
        return found

    @staticmethod
    def _untouched(entry: Json) -> bool:
        return bool(entry["state"].get("waiting", {}).get("reason") == "ContainerCreating")
