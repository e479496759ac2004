"""What is asked of a pod besides its log and processes: a node, or to go."""

from __future__ import annotations

from jupyter_autotrain.testing.kubernetes.objects import metadata
from jupyter_autotrain.testing.kubernetes.objects.errors import conflict
from jupyter_autotrain.testing.kubernetes.server.handlers import ObjectsHandler


class BindingHandler(ObjectsHandler):
    """A scheduler's decision."""

    def get(self) -> None:  # type: ignore[override]
        """405."""
        self.refuse_method()

    put = patch = delete = get

    def post(self) -> None:
        """Put a pod on a node."""
        target = self.target
        pod = self.server.store.get(target.resource, target.namespace, target.name)
        if pod["spec"].get("nodeName"):
            raise conflict(target.resource, target.name, f"pod {target.name} is already assigned to node")
        node = self.body()["target"]["name"]
        patch = {"spec": {"nodeName": node}}
        self.server.store.patch(target.resource, target.namespace, target.name, patch, subresource="binding")
        self.send({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


class EvictionHandler(BindingHandler):
    """A request that a pod goes."""

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
