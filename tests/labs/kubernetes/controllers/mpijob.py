"""MPIJob: the controllers of the MPI operator (`v2beta1`) and of the training operator (`v1`).

Known differences: the keys in the Secret for SSH are random bytes; the init container that brings kubectl does nothing.
"""

from __future__ import annotations

import base64
import secrets

from tests.labs.kubernetes.controllers.kubeflow_status import counted, holds, is_finished
from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.operator_base import JobController
from tests.labs.kubernetes.controllers.times import condition_of, stamp
from tests.labs.kubernetes.custom.training_operator import MPIJOBS
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_LABELS = "training.kubeflow.org"
_CONFIG = "/etc/mpi"


class MPIJobController(JobController):
    """The MPI operator: workers are pods, the launcher is a Job."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        super().__init__(store, loop, MPIJOBS, (PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS), "mpi-job-controller")

    def reconcile(self, key: Key) -> float | None:
        """Workers first, then the launcher, whose end is the job's."""
        job = self.find(key)
        if job is None:
            return None
        status = self.begin(job)
        if is_finished(status):
            return self.clean_up(job, status)
        if not self.is_suspended(job, status):
            status.setdefault("startTime", stamp(self.now))
        launcher = self._launcher(job)
        workers = [] if launcher is not None and _has_ended(launcher) else self._workers(job)
        self._align(job, launcher)
        self._tell(job, status, launcher, workers)
        self.write_status(job, status)
        return None

    def delete_pods(self, job: Json) -> None:
        """Workers only: the launcher's Job is suspended."""
        for pod in self.made(PODS, job):
            self.delete(PODS, pod)

    def _labels(self, job: Json, role: str) -> dict[str, str]:
        return {
            f"{_LABELS}/operator-name": "mpi-operator",
            f"{_LABELS}/job-name": job["metadata"]["name"],
            f"{_LABELS}/job-role": role,
        }

    def _workers(self, job: Json) -> list[Json]:
        """Make what the job needs; its workers."""
        self._make_common(job)
        if job["spec"].get("runPolicy", {}).get("suspend"):
            return []
        spec = job["spec"]["mpiReplicaSpecs"].get("Worker")
        count = spec.get("replicas", 1) if spec else 0
        return [self.make(PODS, job, self._worker(job, index)) for index in range(count)]

    def _make_common(self, job: Json) -> None:
        name = job["metadata"]["name"]
        role = "worker" if self._is_old() else ""
        selector = {key: value for key, value in self._labels(job, role).items() if value}
        is_worker = bool(job["spec"].get("runLauncherAsWorker"))
        service = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": is_worker}
        domain = self._domain(job)
        self.make(SERVICES, job, {"metadata": {"name": domain, "labels": {"app": name}}, "spec": service})
        data = {"hostfile": hostfile(job, domain), "discover_hosts.sh": "#!/bin/sh\n"}
        self.make(CONFIG_MAPS, job, {"metadata": {"name": f"{name}-config", "labels": {"app": name}}, "data": data})
        key = base64.b64encode(secrets.token_bytes(64)).decode()
        body = {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": key, "ssh-publickey": key}}
        self.make(SECRETS, job, {"metadata": {"name": f"{name}-ssh", "labels": {"app": name}}, **body})

    def _is_old(self) -> bool:
        """Return whether it is a release before 0.5."""
        schema = self.store.resources.schema(MPIJOBS) or {}
        return "runLauncherAsWorker" not in schema["properties"]["spec"]["properties"]

    def _domain(self, job: Json) -> str:
        """Return the Service below which all pods have their names; that of an old release has the workers alone."""
        name: str = job["metadata"]["name"]
        return f"{name}-worker" if self._is_old() else name

    def _template(self, job: Json, role: str) -> Json:
        """Return the pod template of a role, with what both have."""
        spec = job["spec"]["mpiReplicaSpecs"][role]
        template: Json = copied(spec["template"])
        metadata = template.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels(job, role.lower())}
        pod = template["spec"]
        pod["restartPolicy"] = (
            "Never" if spec.get("restartPolicy") == "ExitCode" else spec.get("restartPolicy", "Never")
        )
        pod["subdomain"] = self._domain(job)
        paths = (("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys"))
        items = [{"key": key, "path": path} for key, path in paths]
        secret = {"secretName": f"{job['metadata']['name']}-ssh", "defaultMode": 0o600, "items": items}
        pod["volumes"] = [*pod.get("volumes", ()), {"name": "ssh-auth", "secret": secret}]
        _mount(pod, "ssh-auth", job["spec"].get("sshAuthMountPath", "/root/.ssh"))
        return template

    def _worker(self, job: Json, index: int) -> Json:
        name = f"{job['metadata']['name']}-worker-{index}"
        template = self._template(job, "Worker")
        number = index + 1 if job["spec"].get("runLauncherAsWorker") else index
        template["metadata"]["labels"][f"{_LABELS}/replica-index"] = str(number)
        pod = template["spec"]
        pod["hostname"] = name
        container = pod["containers"][0]
        if "command" not in container and "args" not in container:
            container["command"] = ["/usr/sbin/sshd", "-De"]
        _add_variables(container, K_MPI_JOB_ROLE="worker")
        return {"metadata": {**template["metadata"], "name": name}, "spec": pod}

    def _launcher(self, job: Json) -> Json | None:
        found = [one for one in self.made(JOBS, job) if one["metadata"]["name"].endswith("-launcher")]
        if found:
            return found[0]
        self._workers(job)
        name = job["metadata"]["name"]
        policy = job["spec"].get("runPolicy", {})
        spec: Json = {"template": self._launcher_template(job), "podReplacementPolicy": "Failed"}
        for field in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "suspend"):
            if policy.get(field) is not None:
                spec[field] = policy[field]
        metadata = {"name": f"{name}-launcher", "labels": {"app": name}}
        return self.make(JOBS, job, {"metadata": metadata, "spec": spec})

    def _launcher_template(self, job: Json) -> Json:
        name = job["metadata"]["name"]
        template = self._template(job, "Launcher")
        is_worker = bool(job["spec"].get("runLauncherAsWorker"))
        if is_worker:
            template["metadata"]["labels"][f"{_LABELS}/replica-index"] = "0"
        pod = template["spec"]
        pod["hostname"] = f"{name}-launcher"
        config = {"name": f"{name}-config"}
        pod["volumes"].append({"name": "mpi-job-config", "configMap": config})
        _mount(pod, "mpi-job-config", _CONFIG)
        container = pod["containers"][0]
        _add_variables(container, K_MPI_JOB_ROLE="launcher")
        if job["spec"].get("mpiImplementation", "OpenMPI") == "OpenMPI":
            _add_variables(
                container, OMPI_MCA_orte_keep_fqdn_hostnames="true",
                OMPI_MCA_orte_default_hostfile=f"{_CONFIG}/hostfile", OMPI_MCA_plm_rsh_args="-o ConnectionAttempts=10",
                OMPI_MCA_orte_set_default_slots=str(job["spec"].get("slotsPerWorker", 1)),
            )  # fmt: skip
        if not is_worker:
            _add_variables(container, NVIDIA_VISIBLE_DEVICES="", NVIDIA_DRIVER_CAPABILITIES="")
        return template

    def _align(self, job: Json, launcher: Json | None) -> None:
        """Suspend the launcher when the job is."""
        wanted = bool(job["spec"].get("runPolicy", {}).get("suspend"))
        if launcher is not None and bool(launcher["spec"].get("suspend")) != wanted:
            metadata = launcher["metadata"]
            self.store.patch(JOBS, metadata["namespace"], metadata["name"], {"spec": {"suspend": wanted}})

    def _tell(self, job: Json, status: Json, launcher: Json | None, workers: list[Json]) -> None:
        name = job["metadata"]["name"]
        statuses = status.setdefault("replicaStatuses", {})
        statuses["Worker"] = counted(workers, "")
        statuses["Launcher"] = {}
        if launcher is None:
            return
        running = [pod for pod in self.made(PODS, launcher) if pod.get("status", {}).get("phase") == "Running"]
        if _is_true(launcher, "Complete"):
            statuses["Launcher"] = {"succeeded": 1}
            status.setdefault("completionTime", launcher["status"].get("completionTime", stamp(self.now)))
            self.condition(job, status, "Succeeded", f"MPIJob {name} successfully completed.")
        elif _is_true(launcher, "Failed"):
            failed = condition_of(launcher, "Failed") or {}
            status.setdefault("completionTime", stamp(self.now))
            message = f"MPIJob {name} has failed: {failed.get('message', '')}"
            self.condition(job, status, "Failed", message, failed.get("reason", ""))
        elif running and statuses["Worker"].get("active", 0) == len(workers) and not holds(status, "Suspended"):
            statuses["Launcher"] = {"active": len(running)}
            self.condition(job, status, "Running", f"MPIJob {name} is running.")


def hostfile(job: Json, subdomain: str) -> str:
    """Which hosts `mpirun` may use, with how many ranks each."""
    spec = job["spec"]
    name = job["metadata"]["name"]
    slots = spec.get("slotsPerWorker", 1)
    count = spec["mpiReplicaSpecs"].get("Worker", {"replicas": 0}).get("replicas", 1)
    hosts = [f"{name}-launcher"] if spec.get("runLauncherAsWorker") else []
    hosts += [f"{name}-worker-{index}" for index in range(count)]
    domain = f"{subdomain}.{job['metadata']['namespace']}.svc"
    return "".join(f"{host}.{domain} slots={slots}\n" for host in hosts)


def _mount(pod: Json, volume: str, path: str) -> None:
    container = pod["containers"][0]
    container["volumeMounts"] = [*container.get("volumeMounts", ()), {"name": volume, "mountPath": path}]


def _add_variables(container: Json, **values: str) -> None:
    more = [{"name": name, "value": value} for name, value in values.items()]
    container["env"] = [*container.get("env", ()), *more]


def _is_true(found: Json, kind: str) -> bool:
    condition = condition_of(found, kind)
    return condition is not None and condition["status"] == "True"


def _has_ended(launcher: Json) -> bool:
    return _is_true(launcher, "Complete") or _is_true(launcher, "Failed")
