"""The pod template of a trial, the same for all kinds of objects: pure, from the trial, the options and what runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.objects.fields import part
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import security_contexts
from jupyter_autotrain.backends.kubernetes.objects.workload import CONTAINER, deadline_s
from jupyter_autotrain.backends.kubernetes.workloads import patching, volumes
from jupyter_autotrain.core.spec import Resources, TrialSpec

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
_GRACE_S = 30
_NVIDIA = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class PodProgram:
    """The program of a trial's pods.

    Attributes:
        command, args: Of the container.
        env: Its variables.
        secret: Name of the Secret with the values of the variables `secret_variables`; "" for none.
        secret_variables: Variables whose values stand in it under their own names.
        references: Further variables, whose values stand elsewhere, as in a manifest.
        volumes, mounts: What the program itself needs, as in a manifest.
        init_containers: What has to end before it begins, as in a manifest.
        grace_s: How long it may take to end when it is told to.
    """

    command: Sequence[str]
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""
    secret_variables: Sequence[str] = ()
    references: Sequence[JsonObject] = ()
    volumes: Sequence[JsonObject] = ()
    mounts: Sequence[JsonObject] = ()
    init_containers: Sequence[JsonObject] = ()
    grace_s: int = _GRACE_S


def pod_template(
    trial: TrialSpec,
    options: JsonObject,
    program: PodProgram,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> patching.Patched:
    """Return the template, and what `pod_patch` replaced in it; its first container is `CONTAINER`.

    Args:
        trial: What to run.
        options: Of the profile and the header's section, as `KubernetesOptions` has checked them.
        program: What the container runs.
        labels: Of the pods, besides those of the options.
        annotations: Of the pods, besides those of the options.

    Raises:
        BackendError: `pod_patch` cannot be merged, or removes what the trial needs.
    """
    template = {
        "metadata": metadata(options, labels or {}, annotations or {}),
        "spec": _pod_spec(trial, options, program),
    }
    done = patching.patched(template, cast("JsonObject", options.get("pod_patch") or {}), "pod_patch")
    spec = part(done.result, "spec")
    if not spec.get("hostNetwork") or spec.get("dnsPolicy"):
        return done
    names = {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}  # else the node's own, which know no names of pods
    return replace(done, result={**done.result, "spec": names})


def metadata(options: JsonObject, labels: Mapping[str, str], annotations: Mapping[str, str]) -> JsonObject:
    """Return labels and annotations of an object: those of the options, and above them the given ones."""
    found = {
        "labels": {**cast("JsonObject", options.get("labels") or {}), **labels},
        "annotations": {**cast("JsonObject", options.get("annotations") or {}), **annotations},
    }
    return {name: content for name, content in found.items() if content}


def image_of(trial: TrialSpec, options: JsonObject) -> str:
    """Return the image of a trial: its own environment's, else that of the options."""
    environment = trial.python_environment
    if environment.kind is EnvironmentKind.IMAGE:
        return environment.value
    return image_named(options)


def image_named(options: JsonObject) -> str:
    """Return the image of the options."""
    return str(options.get("image") or defaults.IMAGE)


def _pod_spec(trial: TrialSpec, options: JsonObject, program: PodProgram) -> JsonObject:
    of_pod, of_container = security_contexts(options)
    more, mounts = _all_volumes(options, program)
    account = options.get("service_account")
    spec: dict[str, JsonValue] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": deadline_s(trial.timeout_s),  # an object's own would count its time in a queue
        "terminationGracePeriodSeconds": program.grace_s,
        "enableServiceLinks": False,  # the variables of all Services of a namespace are nobody's wish
        "serviceAccountName": account,
        "automountServiceAccountToken": None if account else False,
        "priorityClassName": options.get("priority_class"),
        "schedulerName": options.get("scheduler"),
        "nodeSelector": _node_selector(trial.resources, options),
        "affinity": options.get("affinity"),
        "tolerations": _tolerations(trial.resources, options),
        "securityContext": of_pod,
        "imagePullSecrets": [{"name": name} for name in _texts(options, "image_pull_secrets")],
        "initContainers": list(program.init_containers),
        "containers": [_container(trial, options, program, mounts, of_container)],
        "volumes": more,
    }
    return _without_empty(spec)


def _all_volumes(options: JsonObject, program: PodProgram) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return all volumes and all mounts: the program's, that of shared memory, the user's."""
    found = [*program.volumes], [*program.mounts]
    for more, mounts in (volumes.shared_memory(options), volumes.user_volumes(options)):
        found[0].extend(more)
        found[1].extend(mounts)
    return found


def _container(
    trial: TrialSpec, options: JsonObject, program: PodProgram, mounts: Sequence[JsonObject], security: JsonObject
) -> JsonObject:
    needs = _resources(trial.resources, options)
    container: dict[str, JsonValue] = {
        "name": CONTAINER,
        "image": image_of(trial, options),
        "imagePullPolicy": options.get("image_pull_policy"),
        "command": list(program.command),
        "args": list(program.args),
        "env": _variables(trial, program),
        "resources": {"requests": needs, "limits": needs} if needs else {},
        "securityContext": security,
        "volumeMounts": list(mounts),
    }
    return _without_empty(container)


def _variables(trial: TrialSpec, program: PodProgram) -> list[JsonValue]:
    variables = dict(program.env)
    if not trial.resources.gpus:  # NVIDIA's runtime shows all GPUs to a container that asks for none
        variables.setdefault("NVIDIA_VISIBLE_DEVICES", "none")
    found: list[JsonValue] = [{"name": name, "value": value} for name, value in variables.items()]
    for name in program.secret_variables:
        reference = {"name": program.secret, "key": name}
        found.append({"name": name, "valueFrom": {"secretKeyRef": reference}})
    return [*found, *program.references]


def _resources(needs: Resources, options: JsonObject) -> dict[str, str]:
    """Return what a container gets: requests and limits are the same, as they must be for GPUs."""
    found: dict[str, str] = {}
    if needs.cpus is not None:
        found["cpu"] = f"{needs.cpus:g}" if float(needs.cpus).is_integer() else f"{round(needs.cpus * 1000)}m"
    if needs.memory_bytes is not None:
        found["memory"] = volumes.mebibytes(needs.memory_bytes)
    if needs.gpus:
        found[_gpu_resource(options)] = str(needs.gpus)
    return found


def _gpu_resource(options: JsonObject) -> str:
    return str(options.get("gpu_resource") or defaults.GPU_RESOURCE)


def _node_selector(needs: Resources, options: JsonObject) -> JsonObject:
    selector = dict(cast("JsonObject", options.get("node_selector") or {}))
    if needs.gpus and options.get("gpu_product"):
        selector[GPU_PRODUCT_LABEL] = options["gpu_product"]
    return selector


def _tolerations(needs: Resources, options: JsonObject) -> list[JsonObject]:
    """Return those of the options; with GPUs also the taints by which their nodes keep other pods away."""
    found = list(cast("Iterable[JsonObject]", options.get("tolerations") or []))
    keys = [_gpu_resource(options)] if needs.gpus else []
    if keys and keys[0].startswith(_NVIDIA):  # nodes with parts of GPUs are tainted as those with whole ones
        keys.append(defaults.GPU_RESOURCE)
    tainted: list[JsonObject] = [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in dict.fromkeys(keys)
    ]
    return found + tainted


def _texts(options: JsonObject, name: str) -> list[str]:
    return list(map(str, cast("Iterable[str]", options.get(name) or ())))


def _without_empty(found: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}
