"""A trial with many options, as workloads get it."""

from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadRequest
from jupyter_autotrain.backends.kubernetes.workloads.pod_template import PodProgram, pod_template
from jupyter_autotrain.core.spec import Resources, TrialSpec

LABELS = naming.labels_of("ab12-3-1", "0123456789ab")
OPTIONS = {
    "image": "registry.example/train:1",
    "image_pull_secrets": ["registry-login"],
    "service_account": "trainer",
    "node_selector": {"pool": "training"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}],
    "shared_memory": 1 << 30,
    "storage": {"pvc": "training"},
}


def request(name, *, nodes=1, min_nodes=0, options=None, labels=None):
    resources = Resources(cpus=2, memory_bytes=4 << 30, gpus=1, nodes=nodes)
    trial = TrialSpec("ab12", 3, 1, resources=resources)
    mount = {"name": "code", "mountPath": "/autotrain/code", "readOnly": True}
    program = PodProgram(
        command=["python3", "-u", "/autotrain/code/agent.zip"],
        env={"AUTOTRAIN_POD": "{}"},
        secret=name,
        secret_variables=["HF_TOKEN"],
        volumes=[{"name": "code", "configMap": {"name": "code-1"}}],
        mounts=[mount],
    )
    options = OPTIONS if options is None else options
    return WorkloadRequest(
        name=name,
        namespace="team-a",
        labels=LABELS,
        annotations={},
        nodes=nodes,
        min_nodes=min_nodes or nodes,
        workers_per_node=1,
        launcher="env",
        template=pod_template(trial, options, program, LABELS).result,
        options=options,
    )
