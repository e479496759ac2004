"""Pods and events as a server sends them, for tests of what is read from them."""


def pod(phase="Pending", *, name="pod-0", node="", containers=(), init=(), **status):
    limits = {"memory": "4Gi", "nvidia.com/gpu": "4"}
    resources = {"requests": {"cpu": "16"}, "limits": limits}
    spec = {"containers": [{"name": "trial", "image": "registry.example/train:1", "resources": resources}]}
    spec["initContainers"] = [{"name": "fetch", "image": "registry.example/fetch:1"}]
    if node:
        spec["nodeName"] = node
    status = {"phase": phase, "containerStatuses": list(containers), "initContainerStatuses": list(init), **status}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def waiting_container(reason, message="", name="trial", **more):
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended_container(code, reason="Error", name="trial", **more):
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": reason, **more}}}


def unschedulable(message, reason="Unschedulable"):
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]


def disruption(reason, message=""):
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]


def event(reason, message, about="pod-0"):
    return {"reason": reason, "message": message, "involvedObject": {"name": about}}
