"""The barrier of Frameworks: the program of its image, which runs as an init container of every task."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from tests.labs.kubernetes.controllers.framework_schema import FRAMEWORKS
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

IMAGE = "frameworkcontroller/frameworkbarrier"
_FOLDER = "/mnt/frameworkbarrier"
_WAIT_S = 600.0
_LOOK_AGAIN_S = 0.05
_PERMANENT = 210
_CONFLICT = 201


class FrameworkBarrier:
    """Waits until all tasks of a Framework have an address, and writes them down.

    Args:
        store: The objects.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __call__(self, pod: Json, _container: Json, folders: Mapping[str, str]) -> int:
        """Run it for a pod; gives its exit code."""
        namespace = pod["metadata"]["namespace"]
        folder = Path(folders[_FOLDER])
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            try:
                found = self._store.get(FRAMEWORKS, namespace, pod["metadata"]["labels"]["FC_FRAMEWORK_NAME"])
            except ApiError as error:
                return _PERMANENT if error.code == 404 else 1
            if _have_addresses(found):
                (folder / "framework.json").write_text(json.dumps(found))
                (folder / "injector.sh").write_text(_injector(found))
                return 0
            time.sleep(_LOOK_AGAIN_S)
        return _CONFLICT


def _have_addresses(found: Json) -> bool:
    roles = ((found.get("status") or {}).get("attemptStatus") or {}).get("taskRoleStatuses") or []
    count = sum(role["taskNumber"] for role in found["spec"]["taskRoles"])
    known = [task for role in roles for task in role["taskStatuses"] if task["attemptStatus"]["podIP"]]
    return bool(len(known) >= count)


def _injector(found: Json) -> str:
    lines = ["#!/bin/bash"]
    for role in found["status"]["attemptStatus"]["taskRoleStatuses"]:
        name = role["name"].upper()
        addresses = [task["attemptStatus"]["podIP"] for task in role["taskStatuses"]]
        with_ports = [f"{address}:${{FB_{name}_PORT}}" for address in addresses]
        lines.append(f"export FB_{name}_IPS={','.join(addresses)}")
        lines.append(f"export FB_{name}_ADDRESSES={','.join(with_ports)}")
    return "\n".join(lines) + "\n"
