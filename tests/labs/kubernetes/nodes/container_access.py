"""Logs of containers and processes in them, for the API server."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.labs import namespaces
from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.nodes.kubelet import Kubelet
from tests.labs.kubernetes.objects.values import Json


class ContainerAccess:
    """Finds containers on the nodes.

    Args:
        kubelets: By the names of their nodes.
    """

    def __init__(self, kubelets: Mapping[str, Kubelet]) -> None:
        self._kubelets = kubelets

    def _find(self, pod: Json, container: str) -> tuple[Kubelet, ContainerRun] | None:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", ""))
        run = kubelet.run_of(pod) if kubelet else None
        found = run.run_of(container) if run else None
        return (kubelet, found) if kubelet and found else None

    def log_path(self, pod: Json, container: str, *, previous: bool) -> Path | None:
        """Return the file of the log of a container; None: there is none (yet)."""
        found = self._find(pod, container)
        path = found[0].log_path(found[1], previous=previous) if found else None
        return path if path and path.exists() else None

    def writes_log(self, pod: Json, container: str) -> bool:
        """Return whether the container may still write."""
        found = self._find(pod, container)
        return found is not None and found[0].alive and found[1].is_live

    def exec(
        self, pod: Json, container: str, command: Sequence[str], *, stdin: int, stdout: int, stderr: int
    ) -> subprocess.Popen[bytes]:
        """Start a process in a container.

        Raises:
            OSError: The container does not run.
        """
        found = self._find(pod, container)
        if found is None or not found[1].running or not found[0].alive:
            raise ProcessLookupError(f"container {container} is not running")
        kubelet, run = found
        environment = [f"{name}={value}" for name, value in run.environment.items()]
        into_node = ("nsenter", "--target", str(kubelet.runtime.pid), "--mount", "--pid")
        into_container = ("nsenter", "--target", str(run.runtime_pid), "--all", "--root", "--wd")
        return subprocess.Popen(
            (*into_node, *into_container, "env", "-i", *environment, *command),
            stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True,
            env={"PATH": namespaces.search_path()},
        )  # fmt: skip
