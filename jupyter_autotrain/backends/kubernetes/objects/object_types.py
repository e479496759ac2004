"""The kinds of objects that every cluster serves."""

from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType

JOBS = ObjectType("batch", "v1", "jobs", "Job")
PODS = ObjectType("", "v1", "pods", "Pod")
CONFIG_MAPS = ObjectType("", "v1", "configmaps", "ConfigMap")
SECRETS = ObjectType("", "v1", "secrets", "Secret")
SERVICES = ObjectType("", "v1", "services", "Service")
EVENTS = ObjectType("", "v1", "events", "Event")
NODES = ObjectType("", "v1", "nodes", "Node")
