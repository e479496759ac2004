"""What is made with the object of a trial and deleted with it: Services, Secrets, claims."""

from __future__ import annotations

import asyncio
import time

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.object_types import OWN_TYPES
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import AutotrainError

_WITHIN_S = 20.0  # the cluster deletes them in the background, soon after their owner
_LOOK_AGAIN_S = 0.1


class OwnedObjects:
    """Of the trials of a home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The identity of the home.
    """

    def __init__(self, api: KubernetesApi, namespace: str, home: str) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home

    async def until_gone(self, job: TrackedJob) -> str:
        """Wait until they are gone, with their owner; gives what is not known to be, "" when all is."""
        wanted = [one for one in OWN_TYPES if one.kind in job.owned_kinds]
        end_s = time.monotonic() + _WITHIN_S
        told = [await self._of_kind(one, job, end_s) for one in wanted]
        return "; ".join(filter(None, told))

    async def _of_kind(self, object_type: ObjectType, job: TrackedJob, end_s: float) -> str:
        query = selectors(naming.selector_of_jobs([job.ref.job_id], self._home))
        try:
            while (await self._api.alist(object_type.path(self._namespace), query))[0]:
                if time.monotonic() > end_s:
                    return f"its {object_type.plural} are being deleted"
                await asyncio.sleep(_LOOK_AGAIN_S)
        except AutotrainError as error:
            return f"whether its {object_type.plural} are gone is not known: {error.found.rstrip('.')}"
        return ""
