"""The network of the double's pods."""

from __future__ import annotations

import pytest

from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import SERVICES


def test_pods_reach_each_other_by_name_and_two_jobs_use_one_port(cluster: KubernetesLab) -> None:
    server = "import socket,os; c,_=socket.create_server(('', 29500)).accept(); c.sendall(os.environ['W'].encode())"
    client = (
        "import socket,time\n"
        "while True:\n"
        "  try: print(socket.create_connection(('NAME-0.NAME', 29500)).recv(9).decode()); break\n"
        "  except OSError: time.sleep(0.05)\n"
    )
    for name in ("a", "b"):
        service = {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True}
        cluster.store.create(SERVICES, "default", {"metadata": {"name": name}, "spec": service})
        script = 'if [ $JOB_COMPLETION_INDEX = 0 ]; then exec python3 -c "$SERVER"; else exec python3 -c "$CLIENT"; fi'
        env = [
            {"name": "W", "value": f"from {name}"},
            {"name": "SERVER", "value": server},
            {"name": "CLIENT", "value": client.replace("NAME", name)},
        ]
        spec = {"restartPolicy": "Never", "subdomain": name, "containers": [objects.container(script, env=env)]}
        objects.make_job(cluster, name, spec, completionMode="Indexed", completions=2, parallelism=2)
    for name in ("a", "b"):
        objects.wait_for_condition(cluster, name, "Complete")
        logs = [objects.log(cluster, pod) for pod in objects.pods_of(cluster, name)]
        assert sorted(logs) == ["", f"from {name}\n"]


_ALL_REDUCE = """
import os, torch, torch.distributed as dist
rank = int(os.environ["JOB_COMPLETION_INDEX"])
dist.init_process_group("gloo", init_method="tcp://" + os.environ["FIRST"] + ":29500", rank=rank, world_size=2)
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
print(total.item())
"""


@pytest.mark.long
def test_torch_runs_over_two_pods_and_two_jobs_use_one_port(cluster: KubernetesLab) -> None:
    for name in ("a", "b"):
        service = {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True}
        cluster.store.create(SERVICES, "default", {"metadata": {"name": name}, "spec": service})
        env = [{"name": "FIRST", "value": f"{name}-0.{name}"}, {"name": "CODE", "value": _ALL_REDUCE}]
        container = objects.container('exec python3 -c "$CODE"', env=env)
        spec = {"restartPolicy": "Never", "subdomain": name, "containers": [container]}
        # A rank that asks for the name of the first before it is known ends, and is made again.
        job = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 20}
        objects.make_job(cluster, name, spec, **job)
    for name in ("a", "b"):
        wait_until(lambda name=name: objects.job(cluster, name)["status"].get("succeeded") == 2, name, within_s=200)
        logs = [objects.log(cluster, pod) for pod in objects.pods_of(cluster, name)]
        assert sum(text.endswith("3.0\n") for text in logs) == 2
