"""Differences of the training operator's kinds: containers, ports, variables, and when a job has succeeded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from tests.labs.kubernetes.custom import training_operator as kinds
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a job: of which type, with which number."""

    job: Json
    role: str
    index: int

    @property
    def name(self) -> str:
        """Of the pod and of its Service."""
        return f"{self.job['metadata']['name']}-{self.role.lower()}-{self.index}"


class JobKind(Protocol):
    """Properties of one kind."""

    resource: Resource
    replicas_field: str
    container: str
    port_name: str
    port: int

    def variables(self, replica: Replica) -> list[Json]:
        """Return what the containers of a pod get besides."""
        ...

    def init_containers(self, replica: Replica) -> list[Json]:
        """Return what a pod waits for."""
        ...

    def deciding_role(self, job: Json) -> str:
        """Return the type of replica whose end is the job's."""
        ...

    def has_succeeded(self, job: Json, counts: Json, pods: list[Json]) -> bool:
        """Return whether the deciding replicas have."""
        ...


def replica_specs(kind: JobKind, job: Json) -> dict[str, Json]:
    """Return the types of replicas of a job, with the operator's defaults."""
    found = job["spec"][kind.replicas_field]
    return {role: {"replicas": 1, "restartPolicy": "Never", **spec} for role, spec in found.items()}


def _variable(name: str, value: object) -> Json:
    return {"name": name, "value": str(value)}


def _all_have(job: Json, field: str, role: str, counts: Json) -> bool:
    wanted = job["spec"][field][role].get("replicas", 1)
    return bool(counts.get("succeeded", 0) >= wanted)


class PyTorch:
    """With a master its end is the job's; else all workers', or under an elastic policy any worker's."""

    resource = kinds.PYTORCHJOBS
    replicas_field = "pytorchReplicaSpecs"
    container = "pytorch"
    port_name = "pytorchjob-port"
    port = 23456

    def variables(self, replica: Replica) -> list[Json]:
        """For `torchrun` (PET_...) and for scripts of their own."""
        job = replica.job
        specs = job["spec"][self.replicas_field]
        nodes = sum(spec.get("replicas", 1) for spec in specs.values())
        per_node = job["spec"].get("nprocPerNode", "auto")
        found = [_variable("PYTHONUNBUFFERED", 1)]
        if "Master" in specs:
            processes = int(per_node) if per_node.isdigit() else 1
            found += self._of_master(replica, nodes * processes)
        found.append(_variable("PET_NPROC_PER_NODE", per_node))
        elastic = job["spec"].get("elasticPolicy")
        return found + (self._elastic(job, elastic) if elastic else [_variable("PET_NNODES", nodes)])

    def _of_master(self, replica: Replica, world_size: int) -> list[Json]:
        master = f"{replica.job['metadata']['name']}-master-0"
        rank = replica.index + (1 if replica.role == "Worker" else 0)
        values = {
            "MASTER_PORT": self.port, "PET_MASTER_PORT": self.port, "MASTER_ADDR": master, "PET_MASTER_ADDR": master,
            "WORLD_SIZE": world_size, "RANK": rank, "PET_NODE_RANK": rank,
        }  # fmt: skip
        return [_variable(name, value) for name, value in values.items()]

    def _elastic(self, job: Json, policy: Json) -> list[Json]:
        workers = job["spec"][self.replicas_field]["Worker"].get("replicas", 1)
        least = policy.get("minReplicas", workers)
        host = policy.get("rdzvHost", f"{job['metadata']['name']}-worker-0")
        values = {
            "PET_RDZV_ENDPOINT": f"{host}:{policy.get('rdzvPort', self.port)}",
            "PET_RDZV_BACKEND": policy.get("rdzvBackend", "c10d"),
            "PET_NNODES": f"{least}:{policy.get('maxReplicas', workers)}",
        }
        if "maxRestarts" in policy:
            values["PET_MAX_RESTARTS"] = policy["maxRestarts"]
        return [_variable(name, value) for name, value in values.items()]

    def init_containers(self, replica: Replica) -> list[Json]:
        """Workers wait for the name of their master."""
        if replica.role != "Worker" or "Master" not in replica.job["spec"][self.replicas_field]:
            return []
        master = f"{replica.job['metadata']['name']}-master-0"
        wait = f"until getent hosts {master}; do echo waiting for master; sleep 0.1; done"
        needs = {"requests": {"cpu": "50m", "memory": "10Mi"}, "limits": {"cpu": "100m", "memory": "20Mi"}}
        return [{"name": "init-pytorch", "image": "alpine:3.10", "command": ["sh", "-c", wait], "resources": needs}]

    def deciding_role(self, job: Json) -> str:
        """Return the master, where there is one."""
        return "Master" if "Master" in job["spec"][self.replicas_field] else "Worker"

    def has_succeeded(self, job: Json, counts: Json, pods: list[Json]) -> bool:
        """As the class says."""
        del pods
        role = self.deciding_role(job)
        is_any = role == "Worker" and "elasticPolicy" in job["spec"] and counts.get("succeeded", 0) > 0
        return is_any or _all_have(job, self.replicas_field, role, counts)


class TensorFlow:
    """With a chief its end is the job's; else that of worker 0."""

    resource = kinds.TFJOBS
    replicas_field = "tfReplicaSpecs"
    container = "tensorflow"
    port_name = "tfjob-port"
    port = 2222

    def variables(self, replica: Replica) -> list[Json]:
        """`TF_CONFIG`, where there is more than one pod."""
        metadata = replica.job["metadata"]
        specs = replica.job["spec"][self.replicas_field]
        cluster = {}
        for role, spec in specs.items():
            names = [Replica(replica.job, role, index).name for index in range(spec.get("replicas", 1))]
            cluster[role.lower()] = [f"{name}.{metadata['namespace']}.svc:{self.port}" for name in names]
        if sum(map(len, cluster.values())) == 1:
            return []
        task = {"type": replica.role.lower(), "index": replica.index}
        return [_variable("TF_CONFIG", json.dumps({"cluster": cluster, "task": task, "environment": "cloud"}))]

    def init_containers(self, replica: Replica) -> list[Json]:
        """None."""
        del replica
        return []

    def deciding_role(self, job: Json) -> str:
        """Return the chief, where there is one."""
        return next((role for role in ("Chief", "Master") if role in job["spec"][self.replicas_field]), "Worker")

    def has_succeeded(self, job: Json, counts: Json, pods: list[Json]) -> bool:
        """As the class says; with the policy AllWorkers all have to."""
        role = self.deciding_role(job)
        first = [pod for pod in pods if pod["metadata"]["name"].endswith("-worker-0")]
        is_first = role == "Worker" and job["spec"].get("successPolicy") != "AllWorkers"
        if is_first and any(pod.get("status", {}).get("phase") == "Succeeded" for pod in first):
            return True
        return _all_have(job, self.replicas_field, role, counts)


class Paddle:
    """Without a master (collective mode) the job has succeeded when all workers have."""

    resource = kinds.PADDLEJOBS
    replicas_field = "paddleReplicaSpecs"
    container = "paddle"
    port_name = "master"
    port = 36543

    def variables(self, replica: Replica) -> list[Json]:
        """Return what `paddle.distributed.launch` reads."""
        name = replica.job["metadata"]["name"]
        specs = replica.job["spec"][self.replicas_field]
        own = {"name": "POD_IP_DUMMY", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        first = [own, _variable("PADDLE_MASTER", f"$(POD_IP_DUMMY):{self.port}")]
        other = [_variable("PADDLE_MASTER", f"{name}-worker-0:{self.port}")]
        nodes = sum(spec.get("replicas", 1) for spec in specs.values())
        values = {"PYTHONUNBUFFERED": 1, "PADDLE_JOB_ID": name, "PADDLE_NNODES": nodes}
        return [*[_variable(key, value) for key, value in values.items()], *(other if replica.index else first)]

    def init_containers(self, replica: Replica) -> list[Json]:
        """None."""
        del replica
        return []

    def deciding_role(self, job: Json) -> str:
        """Return the master, where there is one."""
        return "Master" if "Master" in job["spec"][self.replicas_field] else "Worker"

    def has_succeeded(self, job: Json, counts: Json, pods: list[Json]) -> bool:
        """As the class says."""
        del pods
        return _all_have(job, self.replicas_field, self.deciding_role(job), counts)
