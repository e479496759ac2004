"""Pods that are being deleted, and have nothing left to do in the time that they are given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_view
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import AutotrainError

_LAST_GRACE_S = 1


class EndingPods:
    """Has pods that are being deleted end soon: their trial has had its grace, or has not begun.

    While its Python starts, a pod ignores SIGTERM: one that was just scheduled, or that a controller makes for a trial
    that has ended. Who may not delete single pods waits for the pod's own grace.

    Args:
        api: The cluster.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._hastened: set[str] = set()

    async def hasten(self, pods: Iterable[JsonObject]) -> None:
        """Hasten those of some pods that are being deleted, each once.

        Args:
            pods: All that are to be hastened, also those that were.
        """
        ending = {naming.uid_of(pod): pod for pod in pods if _is_ending(pod)}
        new = ending.keys() - self._hastened
        self._hastened = set(ending)
        for uid in new:
            await self._hasten(uid, ending[uid])

    async def _hasten(self, uid: str, pod: JsonObject) -> None:
        options: JsonObject = {
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": _LAST_GRACE_S,
            "preconditions": {"uid": uid},
        }  # fmt: skip
        path = PODS.path(text(pod, "metadata", "namespace"), naming.name_of(pod))
        with contextlib.suppress(AutotrainError):
            await self._api.arequest("DELETE", path, options)


def _is_ending(pod: JsonObject) -> bool:
    return bool(text(pod, "metadata", "deletionTimestamp")) and pod_view.is_alive(pod)
