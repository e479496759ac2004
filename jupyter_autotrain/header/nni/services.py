"""The training services of NNI's experiment files as places of a header: what each of their keys becomes.

Tokens and passwords of a file are left behind: a place finds them where its service's own tools keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_Settings = dict[str, Any]
_SECRETS: Final = frozenset({"token", "email", "password", "access_key_id", "access_key_secret"})


@dataclass(frozen=True, slots=True)
class ServiceKeys:
    """The keys of one training service.

    Attributes:
        type: Of the backend.
        options: The backend's option of each key; a dot leads into a mapping, brackets add the id of one to a list.
        resources: The resource of each key.
        login: Where its credentials come from, for a note.
        shares_code: Whether its jobs see the folder of the code under the path that it has here.
    """

    type: str
    options: Mapping[str, str]
    resources: Mapping[str, str] = field(default_factory=dict)
    login: str = ""
    shares_code: bool = False


SERVICES: Final[Mapping[str, ServiceKeys]] = {
    "openpai": ServiceKeys(
        "openpai",
        {
            "host": "address", "username": "user", "docker_image": "image", "virtual_cluster": "virtual_cluster",
            "storage_config_name": "storage_name", "local_storage_mount_point": "storage.local_path",
            "container_storage_mount_point": "storage.mount_path",
        },
        {"trial_cpu_number": "cpus", "trial_memory_size": "memory"},
        "~/.openpai/clusters.yaml",
    ),
    "dlts": ServiceKeys(
        "dlts",
        {"dashboard": "address", "cluster": "cluster", "team": "team", "image": "image", "gpu_type": "gpu_type"},
        login="~/.netrc",
        shares_code=True,
    ),
    "aml": ServiceKeys(
        "aml",
        {
            "subscription_id": "subscription", "resource_group": "resource_group", "workspace_name": "workspace",
            "compute_target": "compute", "docker_image": "image",
        },
    ),
    "dlc": ServiceKeys(
        "dlc",
        {
            "region": "region", "workspace_id": "workspace", "image": "image", "ecs_spec": "instance",
            "job_type": "job_type", "nas_data_source_id": "data_sources[]", "oss_data_source_id": "data_sources[]",
            "local_storage_mount_point": "storage.local_path", "container_storage_mount_point": "storage.mount_path",
        },
        {"pod_count": "nodes"},
        "~/.alibabacloud/credentials",
    ),
}  # fmt: skip


def read_service(
    keys: ServiceKeys, service: _Settings, settings: _Settings, notes: list[str], code_folder: Path
) -> None:
    """Take the keys of a training service over into settings; those without a counterpart stay in `service`.

    Args:
        keys: What they become.
        service: The section of the file, in snake case.
        settings: Of the header.
        notes: What differs, a sentence each.
        code_folder: The folder of the trial's code.
    """
    backend: _Settings = {"type": keys.type}
    for key, option in keys.options.items():
        if key in service and option.endswith("[]"):
            backend.setdefault(option.removesuffix("[]"), []).append({"id": service.pop(key)})
        elif key in service:
            folder, _, name = option.rpartition(".")
            target = backend.setdefault(folder, {}) if folder else backend
            target[name] = service.pop(key)
    if keys.shares_code:
        folder_here = str(code_folder.parent)
        backend["storage"] = {"local_path": folder_here, "mount_path": folder_here}
        notes.append(f"Its storage is {folder_here}, which jobs see under the same path, as NNI's code folder was.")
    settings["backend"] = backend
    resources = dict(settings.get("resources") or {})
    for key, resource in keys.resources.items():
        if key in service:
            resources[resource] = service.pop(key)
    settings["resources"] = resources or None
    found = sorted(_SECRETS & set(service))
    for key in found:
        del service[key]
    if found:
        notes.append(f"Its {' and '.join(found)} stays in the file: the place takes it from {keys.login}.")
