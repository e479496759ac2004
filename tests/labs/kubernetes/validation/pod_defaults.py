"""Values that the server fills into pods and pod templates."""

from __future__ import annotations

from tests.labs.kubernetes.objects.values import Json

_MODE = 0o644
_NODE_LOSS_S = 300
_POD_SPEC: Json = {
    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}  # fmt: skip
_CONTAINER: Json = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_NODE_LOSS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill(target: Json, defaults: Json) -> None:
    """Set what is not set."""
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = value


def complete_template(template: Json) -> None:
    """Complete a pod template in another object."""
    spec = template.get("spec")
    if isinstance(spec, dict):
        complete_spec(spec)


def complete_spec(spec: Json) -> None:
    """Complete the spec of a pod or of a template."""
    fill(spec, _POD_SPEC | {"securityContext": {}})
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        if isinstance(container, dict):
            _complete_container(container)
    for volume in spec.get("volumes") or []:
        _complete_volume(volume)


def _complete_container(container: Json) -> None:
    image = container.get("image") or ""
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    pull = "Always" if latest and "@" not in image else "IfNotPresent"
    fill(container, _CONTAINER | {"imagePullPolicy": pull, "resources": {}})
    resources = container["resources"]
    for kind in ("limits", "requests"):
        if resources.get(kind):
            resources[kind] = {name: str(value) for name, value in resources[kind].items()}
    if resources.get("limits"):
        fill(resources.setdefault("requests", {}), resources["limits"])
    for port in container.get("ports") or []:
        fill(port, {"protocol": "TCP"})
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            fill(reference, {"apiVersion": "v1"})


def _complete_volume(volume: Json) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for kind in ("configMap", "secret", "downwardAPI", "projected"):
        if isinstance(volume.get(kind), dict):
            fill(volume[kind], {"defaultMode": _MODE})
    if isinstance(volume.get("hostPath"), dict):
        fill(volume["hostPath"], {"type": ""})


def complete_pod(pod: Json) -> None:
    """Complete a new pod: also by what admission adds to it."""
    spec = pod.setdefault("spec", {})
    complete_spec(spec)
    fill(spec, {"serviceAccountName": "default", "serviceAccount": "default", "enableServiceLinks": True})
    fill(spec, {"preemptionPolicy": "PreemptLowerPriority", "priority": 0})
    tolerations = spec.get("tolerations") or []
    present = {item.get("key") for item in tolerations if item.get("effect") in (None, "", "NoExecute")}
    tolerated = [_tolerate(key) for key in _NODE_LOSS if key not in present and None not in present]
    spec["tolerations"] = [*tolerations, *tolerated]
    pod["status"] = {"phase": "Pending", "qosClass": _quality(spec)}


def _tolerate(key: str) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_LOSS_S}


def _quality(spec: Json) -> str:
    resources = [item["resources"] for item in spec.get("containers") or []]
    if not any(item.get("requests") or item.get("limits") for item in resources):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(item) for item in resources) else "Burstable"


def _is_guaranteed(resources: Json) -> bool:
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    return all(limits.get(name) and limits[name] == requests.get(name) for name in ("cpu", "memory"))
