"""The kinds of objects that every cluster serves, and those that trials can be."""

from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType

JOBS = ObjectType("batch", "v1", "jobs", "Job")
PODS = ObjectType("", "v1", "pods", "Pod")
CONFIG_MAPS = ObjectType("", "v1", "configmaps", "ConfigMap")
SECRETS = ObjectType("", "v1", "secrets", "Secret")
SERVICES = ObjectType("", "v1", "services", "Service")
CLAIMS = ObjectType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
POD_GROUP = ObjectType("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
EVENTS = ObjectType("", "v1", "events", "Event")
NODES = ObjectType("", "v1", "nodes", "Node")
TRIAL_TYPES = (
    JOBS,
    ObjectType("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
    ObjectType("kubeflow.org", "v2beta1", "mpijobs", "MPIJob"),
    *(
        ObjectType("kubeflow.org", "v1", f"{kind.lower()}s", kind)
        for kind in ("PyTorchJob", "MPIJob", "TFJob", "PaddleJob")
    ),
    ObjectType("adaptdl.petuum.com", "v1", "adaptdljobs", "AdaptDLJob"),
    ObjectType("frameworkcontroller.microsoft.com", "v1", "frameworks", "Framework"),
)
OWN_TYPES = (*TRIAL_TYPES, POD_GROUP, PODS, SERVICES, SECRETS, CLAIMS, CONFIG_MAPS)  # of which we make objects
NOT_SERVED_CODES = frozenset({403, 404, 405})  # no right to list a kind, or none that is served: we have made none
