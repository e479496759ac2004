"""Requests of the API server to the nodes: logs and processes of containers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.labs.kubernetes.objects.values import Json


class ExecProcess(Protocol):
    """A process in a container; `subprocess.Popen` is one."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status.

        Raises:
            subprocess.TimeoutExpired: It has not ended.
        """
        ...

    def kill(self) -> None:
        """End it."""
        ...


class ContainerRuntime(Protocol):
    """Containers on the nodes."""

    def log_path(self, pod: Json, container: str, *, previous: bool) -> Path | None:
        """Return the file of the log of a container, in the kubelet's format; None: there is none (yet)."""
        ...

    def writes_log(self, pod: Json, container: str) -> bool:
        """Return whether the container may still write."""
        ...

    def exec(
        self, pod: Json, container: str, command: Sequence[str], *, stdin: int, stdout: int, stderr: int
    ) -> ExecProcess:
        """Start a process in a container, with these descriptors.

        Raises:
            OSError: It cannot be started.
        """
        ...
