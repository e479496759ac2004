"""Requests about a pod besides its log and processes: to go."""

from __future__ import annotations

from tests.labs.kubernetes.objects import metadata
from tests.labs.kubernetes.server.handlers import ObjectsHandler


class EvictionHandler(ObjectsHandler):
    """A request that a pod goes."""

    def get(self) -> None:  # type: ignore[override]
        """405."""
        self.refuse_method()

    put = patch = delete = get

    def post(self) -> None:
        """Say that a pod is evicted, then delete it with its grace period."""
        target = self.target
        options = self.body().get("deleteOptions") or {}
        store = self.server.store
        pod = store.get(target.resource, target.namespace, target.name)
        told = {
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }  # fmt: skip
        told["lastTransitionTime"] = metadata.timestamp(store.clock())
        patch = {"status": {"conditions": [*pod.get("status", {}).get("conditions", ()), told]}}
        store.patch(target.resource, target.namespace, target.name, patch, subresource="status")
        store.delete(target.resource, target.namespace, target.name, grace_s=options.get("gracePeriodSeconds"))
        self.send({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)
