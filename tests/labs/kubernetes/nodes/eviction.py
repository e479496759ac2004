"""Which pods use more of their node's disk than they may."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.nodes.pod_run import PodRun
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.quantities import amount

CHECK_S = 0.5


def is_limited(pod: Json) -> bool:
    """Return whether a pod has a limit of disk at all."""
    sizes = [(volume.get("emptyDir") or {}).get("sizeLimit") for volume in pod["spec"].get("volumes", ())]
    return any(sizes) or any(_limit(container) for container in pod["spec"]["containers"])


def _limit(container: Json) -> str:
    return str(container.get("resources", {}).get("limits", {}).get("ephemeral-storage", ""))


def message(pod: Json, run: PodRun) -> str:
    """Why a pod is to be evicted; "": it is not."""
    folders = run.sandbox.volumes.empty_dirs(pod)
    for volume in pod["spec"].get("volumes", ()):
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit and volume["name"] in folders and folder_bytes(folders[volume["name"]]) > amount(limit):
            return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
    for container in run.runs:
        limit = _limit(container.spec)
        if limit and _used(container) > amount(limit):
            return f'Container {container.name} exceeded its local ephemeral storage limit "{limit}". '
    limits = [_limit(container) for container in pod["spec"]["containers"]]
    total = sum(_used(container) for container in run.runs) + sum(map(folder_bytes, folders.values()))
    if all(limits) and total > sum(map(amount, limits)):
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {', '.join(limits)}. "
    return ""


def _used(container: ContainerRun) -> int:
    log = Path(container.log).parent if container.log else None
    return container.written_bytes + (folder_bytes(log) if log and log.exists() else 0)


def folder_bytes(folder: Path) -> int:
    """Return how much lies in a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it was removed just now
                total += (Path(place) / name).lstat().st_size
    return total
