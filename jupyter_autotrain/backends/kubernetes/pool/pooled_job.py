"""The Job of a trial that a long-running pod runs."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadRequest, WorkloadState
from jupyter_autotrain.backends.kubernetes.pool import pooling
from jupyter_autotrain.backends.kubernetes.workloads.job import JobWorkload
from jupyter_autotrain.core.json import JsonObject


class PooledJobWorkload(JobWorkload):
    """Keeps what a trial is, and never has pods of its own."""

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """The Job, suspended."""
        job, *others = super().render(request)
        return [pooling.as_pooled(job, request.options), *others]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:  # noqa: ARG002 - it is suspended whatever happens
        """By the long-running pod."""
        return pooling.state(pods)
