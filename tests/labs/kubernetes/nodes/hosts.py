"""Names of pods and Services, as lines of /etc/hosts: the double's only name service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.objects.values import Json

_DOMAIN = "cluster.local"
_HEAD = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"


def own_lines(pod: Json, address: str) -> str:
    """Return what the kubelet writes for a pod itself."""
    spec = pod["spec"]
    hostname = hostname_of(pod)
    names = [hostname]
    if spec.get("subdomain"):
        names.insert(0, f"{hostname}.{spec['subdomain']}.{pod['metadata']['namespace']}.svc.{_DOMAIN}")
    aliases = [f"{entry['ip']}\t{' '.join(entry.get('hostnames', ()))}\n" for entry in spec.get("hostAliases", ())]
    return _HEAD + f"{address}\t{' '.join(names)}\n" + "".join(aliases)


def hostname_of(pod: Json) -> str:
    """Return the hostname in a pod."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def service_lines(namespace: str, services: Iterable[Json], pods: Sequence[Json]) -> str:
    """Return the names of a namespace's Services and of the pods behind them, as pods of the namespace say them."""
    lines = []
    for service in services:
        name = service["metadata"]["name"]
        for pod in pods:
            if not _is_behind(service, pod):
                continue
            address = pod["status"]["podIP"]
            lines.append(f"{address}\t{' '.join(_forms(name, namespace))}\n")
            if pod["spec"].get("subdomain") == name and pod["spec"].get("hostname"):
                lines.append(f"{address}\t{' '.join(_forms(pod['spec']['hostname'] + '.' + name, namespace))}\n")
    return "".join(lines)


def _forms(name: str, namespace: str) -> list[str]:
    return [f"{name}.{namespace}.svc.{_DOMAIN}", f"{name}.{namespace}.svc", f"{name}.{namespace}", name]


def _is_behind(service: Json, pod: Json) -> bool:
    selector = service["spec"].get("selector") or {}
    status = pod.get("status", {})
    if not selector or not status.get("podIP") or status.get("phase") in ("Succeeded", "Failed"):
        return False
    labels = pod["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    ready = any(found["type"] == "Ready" and found["status"] == "True" for found in status.get("conditions", ()))
    return ready or bool(service["spec"].get("publishNotReadyAddresses"))
