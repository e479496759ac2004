"""The requests that start a trial in a Ray cluster: for each node a package, which has the node's secrets, and a job.

The manager chooses the nodes, and each job asks for its own one by Ray's resource of that name; so they find each other
by the address of the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends.services.http_client import Request, json_request
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage, zipped
from jupyter_autotrain.backends.services.service import nodes_of
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import Placement

ON_NODE: Final = 0.001  # of the resource that each node has once, by its address
TYPE: Final = "accelerator_type:"
PYTHON_FLAGS: Final = "-I -S -u"
_STOP_WAIT_S = 60
_FIRST_PORT = 22_000  # above those of Ray's workers, below those that systems give out by themselves
_PORTS = 10_000
VARIABLES: Final[Mapping[str, str]] = MappingProxyType({
    "rank": "AUTOTRAIN_NODE", "first_address": places.FIRST_ADDRESS_VARIABLE, "first_port": "AUTOTRAIN_FIRST_PORT",
})  # fmt: skip


def names_of(ref: JobRef) -> list[str]:
    """Return the names of the jobs of a trial, in the order of its nodes."""
    return _names(str(ref.data["name"]), nodes_of(ref))


def _names(name: str, nodes: int) -> list[str]:
    return [name, *(f"{name}{service_job.of_node(node, nodes)}" for node in range(1, nodes))]


def folder_of(options: JsonObject, name: str) -> str:
    """Return the folder of all that a job makes on its node."""
    return f"{str(options.get('workdir') or '/tmp').rstrip('/')}/{name}"  # noqa: S108 - nobody else can guess the name


def requests_of(
    options: JsonObject, package: TrialPackage, placement: Placement, values: Mapping[str, str]
) -> Iterator[tuple[str, Request, Request]]:
    """Yield of each node the name of its job, the request that sends its package, and the one that starts the job.

    Args:
        options: Of the profile.
        package: The trial.
        placement: The nodes; none where Ray shall choose one.
        values: Of the trial's secrets.
    """
    for node, name in enumerate(_names(package.name, package.nodes)):
        content = zipped(package.with_secrets(values, node))
        uri = f"_ray_pkg_{hashlib.sha256(content).hexdigest()[:40]}.zip"
        send = Request("PUT", f"/api/packages/gcs/{uri}", body=content, content_type="application/octet-stream")
        job = _job(package, placement, node, name)
        own = {**_variables(package, placement, node), "RAY_JOB_STOP_WAIT_TIME_S": str(_STOP_WAIT_S)}
        given = mapping(package.options.get("runtime_env"))
        environment = {**given, "working_dir": f"gcs://{uri}", "env_vars": {**mapping(given.get("env_vars")), **own}}
        folder = folder_of(options, name)
        command = f"exec {package.python} {PYTHON_FLAGS} {agent_archive.NAME} {folder}{_shared(options, package)}"
        start = {**job, "entrypoint": command, "runtime_env": environment}
        yield name, send, json_request("POST", "/api/jobs/", start)


def _shared(options: JsonObject, package: TrialPackage) -> str:
    """Return the argument of a job that runs several trials: its folder in the storage; else ""."""
    if not package.is_pilot:
        return ""
    return f" {MountedFolder(mapping(options.get('storage'))).there}/jobs/{package.name}"


def _variables(package: TrialPackage, placement: Placement, node: int) -> Mapping[str, str]:
    if package.nodes == 1:
        return package.job_variables if package.is_pilot else package.variables
    port = _FIRST_PORT + int(hashlib.sha256(package.name.encode()).hexdigest(), 16) % _PORTS
    first = placement.nodes[0].node if placement.nodes else ""
    return {**package.variables, **dict(zip(VARIABLES.values(), (str(node), first, str(port)), strict=True))}


def _job(package: TrialPackage, placement: Placement, node: int, name: str) -> JsonObject:
    """Return what a job of a node asks for."""
    options = package.options
    resources = package.trial.resources
    custom = {str(key): amount for key, amount in mapping(options.get("resources")).items()}
    if placement.nodes:
        custom[f"node:{placement.nodes[node].node}"] = ON_NODE
    if options.get("gpu_type") and resources.gpus:
        custom[f"{TYPE}{options['gpu_type']}"] = ON_NODE
    job: dict[str, JsonValue] = {
        "submission_id": name, "metadata": {"jupyter_autotrain": package.trial.job_id},
        "entrypoint_num_cpus": resources.cpus or 1, "entrypoint_num_gpus": resources.gpus,
    }  # fmt: skip
    if resources.memory_bytes:
        job["entrypoint_memory"] = resources.memory_bytes
    if custom:
        job["entrypoint_resources"] = custom
    if labels := mapping(options.get("labels")):
        job["entrypoint_label_selector"] = labels
    return job


def mapping(value: JsonValue) -> JsonObject:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
