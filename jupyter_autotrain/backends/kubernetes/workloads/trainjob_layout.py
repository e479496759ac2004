"""How a release of Kubeflow Trainer wants its TrainJobs: its fields have changed from release to release."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from jupyter_autotrain.backends.kubernetes.access.served import properties
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.errors import BackendError

_POD_SPEC = ("replicatedJobs", "template", "spec", "template", "spec")
_PATHS = {
    "runtimePatches": ("runtimePatches", "trainingRuntimeSpec", "template", "spec", *_POD_SPEC),
    "podTemplateOverrides": ("podTemplateOverrides", "spec"),
}
_WITHOUT_LABELS = "podSpecOverrides"  # of Trainer 2.0: it changes the spec of pods alone
_MANAGER = "jupyter-autotrain/trial"
_NEWEST_FIELDS = frozenset(
    {
        "affinity", "containers", "imagePullSecrets", "initContainers", "nodeSelector", "schedulingGates",
        "securityContext", "serviceAccountName", "terminationGracePeriodSeconds", "tolerations", "volumes",
    }
)  # fmt: skip
_NEWEST_CONTAINER_FIELDS = frozenset({"env", "name", "securityContext", "volumeMounts"})


@dataclass(frozen=True, slots=True)
class TrainJobLayout:
    """The fields of one release.

    Attributes:
        overrides: The field that changes the pods of the runtime.
        pod_fields: What it can change of a pod's spec.
        container_fields: What it can change of a container.
        has_deadline: Whether there is `activeDeadlineSeconds`.
        overrides_have_manager: Whether `podTemplateOverrides` says who has written it.
    """

    overrides: str = "runtimePatches"
    pod_fields: Collection[str] = _NEWEST_FIELDS
    container_fields: Collection[str] = _NEWEST_CONTAINER_FIELDS
    has_deadline: bool = True
    overrides_have_manager: bool = True

    def override(self, job: str, metadata: JsonObject, spec: JsonObject) -> JsonValue:
        """The value of the field that changes the pods.

        Args:
            job: The replicated job that is changed.
            metadata: Labels and annotations for its pods.
            spec: The part of the pods' spec.
        """
        if self.overrides == "podTemplateOverrides":
            manager = {"manager": _MANAGER} if self.overrides_have_manager else {}
            return [{**manager, "targetJobs": [{"name": job}], "metadata": metadata, "spec": spec}]
        pod = {"spec": {"template": {"metadata": metadata, "spec": spec}}}
        jobs: JsonValue = [{"name": job, "template": pod}]
        return [{"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


def layout_of(schema: JsonObject) -> TrainJobLayout:
    """The layout that a served schema has; the newest one where it tells nothing.

    Raises:
        BackendError: It is that of a release whose pods cannot be labelled, so that they would not be found.
    """
    fields = properties(schema, "spec")
    for overrides, path in _PATHS.items():
        if overrides in fields:
            return TrainJobLayout(
                overrides=overrides,
                pod_fields=frozenset(properties(schema, "spec", *path)),
                container_fields=frozenset(properties(schema, "spec", *path, "containers")),
                has_deadline="activeDeadlineSeconds" in fields,
                overrides_have_manager="manager" in properties(schema, "spec", overrides),
            )
    if _WITHOUT_LABELS in fields:
        raise BackendError(
            "This Kubeflow Trainer is release 2.0, whose TrainJobs cannot label their pods.",
            "Trainer 2.1 or later was expected.",
            "Have it updated, or use `kind: PyTorchJob` where it is served.",
        )
    return TrainJobLayout()
