"""Options that only profiles of AdaptDL have."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import OperatorOptions
from jupyter_autotrain.backends.kubernetes.options.option_types import ObjectName, from_true
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Few, Size, Truth, Workers


class CheckpointOptions(Section):
    """A volume for each trial, where its checkpoints outlive its pods."""

    storage_class: ObjectName | None = Field(
        default=None, description="The storage class; else the cluster's default.", examples=["nfs-client"]
    )
    size: Size = Field(default=1 << 30, description="Its size.", examples=["10GB"])


_Checkpoint = Annotated[CheckpointOptions, BeforeValidator(from_true, json_schema_input_type=bool | CheckpointOptions)]


class AdaptdlOptions(OperatorOptions):
    """Options of AdaptDL, besides those of Kubernetes."""

    header_keys: ClassVar[tuple[str, ...]] = (
        *OperatorOptions.header_keys, "min_replicas", "max_replicas", "preemptible", "checkpoint",
    )  # fmt: skip

    min_replicas: Few | None = Field(
        default=None,
        description="The least number of replicas; 0: AdaptDL may take all away. Else the trial's `nodes`.",
        examples=["1"],
    )
    max_replicas: Workers | None = Field(
        default=None, description="The greatest number of replicas; else the trial's `nodes`.", examples=["8"]
    )
    preemptible: Truth | None = Field(
        default=None,
        description=(
            "AdaptDL may end a trial and go on elsewhere, and places it at once, not once a minute; by default where "
            "its checkpoints outlive its pods. Where they do not, `retries:` goes on after such an end."
        ),
        examples=["true"],
    )
    checkpoint: _Checkpoint | None = Field(
        default=None,
        description="Where there is no `storage`: a volume for each trial, deleted with it.",
        examples=["{storage_class: nfs-client, size: 10GB}"],
    )
