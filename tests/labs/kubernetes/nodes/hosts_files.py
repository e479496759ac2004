"""Keeps /etc/hosts of all pods as the Services and pods of their namespace are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.nodes import hosts
from tests.labs.kubernetes.nodes.kubelet import Kubelet
from tests.labs.kubernetes.objects.resources import PODS, SERVICES, Resource
from tests.labs.kubernetes.objects.values import Json


class HostsFiles:
    """A key is a namespace."""

    watches: Sequence[Resource] = (PODS, SERVICES)

    def __init__(self, loop: ControlLoop, kubelets: Mapping[str, Kubelet]) -> None:
        self._loop = loop
        self._kubelets = kubelets
        self._written: dict[str, str] = {}  # by the uids of pods

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the namespace of what has changed."""
        del resource
        yield found["metadata"]["namespace"], ""

    def reconcile(self, key: Key) -> float | None:
        """Write the files that are to be others."""
        namespace = key[0]
        services = [found for found in self._loop.objects(SERVICES) if found["metadata"]["namespace"] == namespace]
        if not services and not self._written:
            return None
        pods = [found for found in self._loop.objects(PODS) if found["metadata"]["namespace"] == namespace]
        lines = hosts.service_lines(namespace, services, pods)
        for pod in pods:
            self._write(pod, lines)
        return None

    def _write(self, pod: Json, lines: str) -> None:
        uid = pod["metadata"]["uid"]
        path = self._path(pod)
        if path is None or not path.exists():
            self._written.pop(uid, None)
        elif lines != self._written.get(uid, ""):
            _rewrite(path, hosts.own_lines(pod, pod["status"]["podIP"]) + lines)
            self._written[uid] = lines

    def _path(self, pod: Json) -> Path | None:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", ""))
        if kubelet is None or not kubelet.alive or not pod.get("status", {}).get("podIP"):
            return None
        return kubelet.starter.hosts_file(pod["metadata"]["uid"])


def _rewrite(path: Path, text: str) -> None:
    """Write a file in place, since it is mounted, and never empty, since it is read at any time."""
    with path.open("r+") as file:
        file.write(text)
        file.truncate()
