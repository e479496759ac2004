"""Deletes the objects of trials that are collected: many by one request."""

from __future__ import annotations

import asyncio
import logging

from jupyter_autotrain.backends.kubernetes import naming
from jupyter_autotrain.backends.kubernetes.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.object_types import CONFIG_MAPS
from jupyter_autotrain.backends.kubernetes.objects import items
from jupyter_autotrain.backends.kubernetes.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import AutotrainError

_WINDOW_S = 0.5  # how long the first one waits for others
_MOST_AT_ONCE = 50  # the names of the jobs stand in the address of the request
_log = logging.getLogger(__name__)


class ObjectDeleter:
    """Deletes objects of one home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The digest of the home.
    """

    def __init__(self, api: KubernetesApi, namespace: str, home: str) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home
        self._waiting: dict[ObjectType, set[str]] = {}
        self._is_running = False

    def delete_soon(self, object_type: ObjectType, job_id: str) -> None:
        """Delete the object of a job, together with others. In the loop."""
        self._waiting.setdefault(object_type, set()).add(job_id)
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().create_task(self._delete_waiting())

    async def _delete_waiting(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(_WINDOW_S)
                await self._delete_some()
        finally:
            self._is_running = False

    async def _delete_some(self) -> None:
        object_type = next(iter(self._waiting))
        waiting = self._waiting[object_type]
        chosen = sorted(waiting)[:_MOST_AT_ONCE]
        try:
            await self.delete(object_type, chosen)
            waiting.difference_update(chosen)
        except AutotrainError as error:  # the next window tries again
            _log.warning("objects of ended trials cannot be deleted: %s", error.found)
            await asyncio.sleep(_WINDOW_S * 10)
        if not waiting:
            self._waiting.pop(object_type, None)

    async def delete_unowned_code(self) -> None:
        """Delete the ConfigMaps that an earlier manager has made and was killed before any object owned them.

        One that a submit is just about to use is made again by it (`CodeObjects.flush`).
        """
        while self._waiting:
            await asyncio.sleep(_WINDOW_S)
        path = CONFIG_MAPS.path(self._namespace)
        try:
            found = await self._api.arequest("GET", path, None, selectors(naming.selector_of_home(self._home)))
            for one in items(found, "items"):
                if not items(one, "metadata", "ownerReferences"):
                    await self._api.arequest("DELETE", f"{path}/{naming.name_of(one)}")
        except AutotrainError as error:  # `clean` finds them
            _log.warning("code that nothing uses stays in the cluster: %s", error.found)

    async def delete(self, object_type: ObjectType, job_ids: list[str]) -> None:
        """Delete the objects of some jobs, and in the background what they own.

        Raises:
            BackendError: The cluster refuses, or does not answer.
        """
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        query = {"labelSelector": naming.selector_of_jobs(job_ids, self._home)}
        await self._api.arequest("DELETE", object_type.path(self._namespace), options, query)
