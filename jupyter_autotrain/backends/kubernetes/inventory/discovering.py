"""Asking a cluster what it has. What may not be listed is unknown, which is not none."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.inventory import node_inventory
from jupyter_autotrain.backends.kubernetes.objects.object_types import NODES, PODS
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.json import JsonObject

_FORBIDDEN = 403


def discover(api: KubernetesApi, options: JsonObject) -> Inventory:
    """The nodes of a cluster, with what pods of all namespaces have taken of them; two requests.

    Raises:
        BackendError: The cluster does not answer, or refuses something else than the lists.
    """
    try:
        nodes = api.list(NODES, None)
    except ApiRefusedError as error:
        if error.code != _FORBIDDEN:
            raise
        return node_inventory.unknown(
            "its nodes may not be listed by this account: a ClusterRole with list of nodes can"
        )
    pods: list[JsonObject] | None = None
    try:
        pods = api.list(PODS, None, slim=node_inventory.slim_pod)
    except ApiRefusedError as error:
        if error.code != _FORBIDDEN:
            raise
    return node_inventory.inventory(nodes, pods, options)
