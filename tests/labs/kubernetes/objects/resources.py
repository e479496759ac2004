"""The resources that the API server serves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from tests.labs.kubernetes.objects.values import Json


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object under its paths.

    Attributes:
        group: "" for the core group.
        version: As served, such as v1.
        plural: The name in paths.
        kind: The name in manifests.
        namespaced: Whether its objects lie in namespaces.
        subresources: What lies below its objects, such as status and log.
        short_names: What kubectl also calls it.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: tuple[str, ...] = ("status",)
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As manifests say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As messages name it, such as jobs.batch."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> tuple[str, str]:
        """Return what its objects are kept under: all versions of a resource have the same objects."""
        return self.group, self.plural

    @property
    def has_status(self) -> bool:
        """Return whether its status is changed only through the subresource."""
        return "status" in self.subresources


_POD_PARTS = ("status", "log", "exec", "eviction")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", subresources=(), short_names=("cm",))
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints", subresources=(), short_names=("ep",))
EVENTS = Resource("", "v1", "events", "Event", subresources=(), short_names=("ev",))
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", subresources=(), short_names=("limits",))
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, ("status", "finalize"), ("ns",))
NODES = Resource("", "v1", "nodes", "Node", False, short_names=("no",))
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",))
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, short_names=("pv",))
PODS = Resource("", "v1", "pods", "Pod", subresources=_POD_PARTS, short_names=("po",))
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", short_names=("quota",))
SECRETS = Resource("", "v1", "secrets", "Secret", subresources=())
SERVICES = Resource("", "v1", "services", "Service", short_names=("svc",))
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", subresources=(), short_names=("sa",))
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", subresources=())
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, (), ("pc",))
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, (), ("sc",))
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", subresources=())
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", subresources=())
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, ())
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False, ()
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("status",), ("crd",)
)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", short_names=("rs",))
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", short_names=("deploy",))
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", short_names=("sts",))

BUILT_IN = (
    CONFIG_MAPS, ENDPOINTS, EVENTS, LIMIT_RANGES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES, PODS, RESOURCE_QUOTAS, SECRETS, SERVICES, SERVICE_ACCOUNTS, JOBS, LEASES, PRIORITY_CLASSES,
    STORAGE_CLASSES, ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CUSTOM_RESOURCE_DEFINITIONS,
    REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS,
)  # fmt: skip


class ResourceTable:
    """The resources that are served now, with the schemas of custom ones. Thread-safe."""

    built_in = BUILT_IN

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served = {(item.group, item.version, item.plural): item for item in BUILT_IN}
        self._schemas: dict[tuple[str, str, str], Json] = {}

    def add(self, resource: Resource, schema: Json | None = None) -> None:
        """Serve a custom resource; without a schema every field is known."""
        key = (resource.group, resource.version, resource.plural)
        with self._lock:
            self._served[key] = resource
            self._schemas[key] = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    def remove(self, resource: Resource) -> None:
        """Serve it no longer."""
        key = (resource.group, resource.version, resource.plural)
        with self._lock:
            self._served.pop(key, None)
            self._schemas.pop(key, None)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource of a path; None: not served."""
        with self._lock:
            return self._served.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a manifest; None: not served."""
        for resource in self:
            if resource.api_version == api_version and resource.kind == kind:
                return resource
        return None

    def schema(self, resource: Resource) -> Json | None:
        """Return the schema of a custom resource; None: it is built in."""
        with self._lock:
            return self._schemas.get((resource.group, resource.version, resource.plural))

    def __iter__(self) -> Iterator[Resource]:
        with self._lock:
            return iter(list(self._served.values()))
