"""Options that only profiles of Kubeflow's operators have."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import OperatorOptions
from jupyter_autotrain.backends.kubernetes.options.option_types import ObjectName
from jupyter_autotrain.header.quantities import OneOf

KINDS = ("TrainJob", "PyTorchJob", "MPIJob", "TFJob", "PaddleJob")
_KIND = OneOf(KINDS, tuple((kind.lower(), kind) for kind in KINDS))


class KubeflowOptions(OperatorOptions):
    """Options of Kubeflow's operators, besides those of Kubernetes."""

    header_keys: ClassVar[tuple[str, ...]] = (*OperatorOptions.header_keys, "kind", "runtime")

    kind: Annotated[str, _KIND] | None = Field(
        default=None,
        description="The kind of object; else the newest that the cluster serves and that fits the launcher.",
        examples=["PyTorchJob"],
    )
    runtime: ObjectName | None = Field(
        default=None,
        description="The training runtime of a TrainJob, whose image is used where `image:` is the default; else one "
        "of the launcher's framework.",
        examples=["torch-distributed"],
    )
