"""Options that only profiles of FrameworkController have."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from jupyter_autotrain.backends.kubernetes.objects import workload
from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import OperatorOptions
from jupyter_autotrain.header.document import UnfitError
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import AS_INTEGER, Duration, Text, Truth, Workers

_ROLE = re.compile(r"[a-z0-9]{1,63}")
_Count = Annotated[int, Field(ge=-1, le=10_000), AS_INTEGER]


def _role_name(value: object) -> str:
    if not isinstance(value, str) or not _ROLE.fullmatch(value):
        raise UnfitError("expected small letters and digits alone, such as worker")
    return value


class TaskRoleOptions(Section):
    """A group of tasks whose end counts alike."""

    name: Annotated[str, BeforeValidator(_role_name)] = Field(
        default=workload.TASK_ROLE, description="Its name: small letters and digits alone.", examples=["chief"]
    )
    task_number: Workers = Field(default=1, description="How many nodes of the trial it has.", examples=["3"])
    min_failed_tasks: _Count = Field(
        default=1, description="With so many failed tasks the trial has failed; -1: with none.", examples=["-1"]
    )
    min_succeeded_tasks: _Count = Field(
        default=-1,
        description="With so many succeeded tasks the trial has succeeded; -1: when all have.",
        examples=["1"],
    )


class FrameworkOptions(OperatorOptions):
    """Options of FrameworkController, besides those of Kubernetes."""

    header_keys: ClassVar[tuple[str, ...]] = (
        *OperatorOptions.header_keys, "task_roles", "max_retry_count", "fancy_retry_policy", "pod_deletion_timeout",
    )  # fmt: skip

    task_roles: tuple[TaskRoleOptions, ...] = Field(
        default=(),
        description="The trial's nodes by role, in the order of their ranks; else one role, worker.",
        examples=["[{name: chief, min_succeeded_tasks: 1}, {name: worker, task_number: 3}]"],
    )
    max_retry_count: Annotated[int, Field(ge=-1, le=10_000), AS_INTEGER] = Field(
        default=0,
        description="How often a trial that failed is begun again by the controller; -1: always. Needs `storage`.",
        examples=["2"],
    )
    fancy_retry_policy: Truth = Field(
        default=False,
        description="What the controller takes for transient, such as an eviction, does not count. Needs `storage`.",
        examples=["true"],
    )
    pod_deletion_timeout: Duration | None = Field(
        default=None,
        description="After it a pod that cannot be deleted, as on a lost node, is taken for gone.",
        examples=["10m"],
    )
    barrier_image: Text = Field(
        default=workload.BARRIER_IMAGE,
        description="The image of the barrier at which several nodes wait for each other.",
        examples=["registry.example.com/frameworkbarrier"],
    )
