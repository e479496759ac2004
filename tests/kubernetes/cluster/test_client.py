"""Everything that the cluster of the double serves, as the official client reads it: it checks each field."""

from __future__ import annotations

from kubernetes import client, config

from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab


def read_all(api_client: client.ApiClient) -> dict[str, int]:
    core = client.CoreV1Api(api_client)
    found = {
        "jobs": client.BatchV1Api(api_client).list_job_for_all_namespaces(),
        "pods": core.list_pod_for_all_namespaces(),
        "nodes": core.list_node(),
        "events": core.list_event_for_all_namespaces(),
        "services": core.list_service_for_all_namespaces(),
        "config maps": core.list_config_map_for_all_namespaces(),
        "namespaces": core.list_namespace(),
    }
    return {name: len(items.items) for name, items in found.items()}


def test_the_official_client_accepts_all_that_happens(cluster: KubernetesLab) -> None:
    objects.make_job(cluster, "good", objects.pod_spec("true"))
    objects.make_job(cluster, "bad", objects.pod_spec("exit 3"), backoffLimit=0)
    objects.make_job(cluster, "waits", objects.pod_spec("true") | {"nodeSelector": {"nowhere": "yes"}})
    configuration = client.Configuration()
    config.load_kube_config(str(cluster.kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as api_client:
        read_all(api_client)
        objects.wait_for_condition(cluster, "good", "Complete")
        objects.wait_for_condition(cluster, "bad", "Failed")
        wait_until(lambda: objects.pods_of(cluster, "waits"), "the pod that waits")
        counts = read_all(api_client)
    assert counts["jobs"] == 3
    assert counts["pods"] == 3
    assert counts["nodes"] == 2
    assert counts["events"] > 0
