"""Pods of the double: what their processes see, and how they end."""

from __future__ import annotations

import base64
import subprocess

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS


def test_volumes_lie_where_containers_mount_them(cluster: KubernetesLab) -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    cluster.store.create(
        CONFIG_MAPS, "default", {"metadata": {"name": "c"}, "data": {"a": "A", "b": "B"}, "binaryData": {"x": encoded}}
    )
    secret = {"metadata": {"name": "s"}, "data": {"key": base64.b64encode(b"hidden").decode()}}
    cluster.store.create(SECRETS, "default", secret)
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.store.create(PERSISTENT_VOLUME_CLAIMS, "default", {"metadata": {"name": "claim"}, "spec": claim})
    volumes = [
        {"name": "c", "configMap": {"name": "c", "items": [{"key": "a", "path": "d/a", "mode": 0o400}]}},
        {"name": "all", "configMap": {"name": "c", "defaultMode": 0o444}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
        {"name": "f", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "nfs", "nfs": {"server": "files", "path": "/exports"}},
    ]
    script = (
        "cat /c/d/a; stat -c ' %a' /c/d/a; ls /c; od -An -tx1 /all/x; cat /s/key; echo; cat /f/labels; echo;"
        "echo kept > /p/sub/file; touch /nfs/x /dev/shm/x; test -w /all/a || echo denied"
    )
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("c", "all", "s", "f", "nfs")]
    mounts[1]["readOnly"] = True
    mounts += [{"name": "p", "mountPath": "/p/sub", "subPath": "inner"}, {"name": "m", "mountPath": "/dev/shm"}]
    spec = {"restartPolicy": "Never", "volumes": volumes}
    objects.make_pod(
        cluster, "p", spec | {"containers": [objects.container(script, volumeMounts=mounts)]}, labels={"l": "v"}
    )
    pod = objects.wait_for_phase(cluster, "p", "Succeeded")
    lines = [line.strip() for line in objects.log(cluster, pod).splitlines()]
    assert lines == ["A 400", "d", "00 ff", "hidden", 'l="v"', "denied"]
    assert (cluster.folder / "shared/claims/default/claim/inner/file").read_text() == "kept\n"


def test_variables_come_from_objects_fields_and_each_other(cluster: KubernetesLab) -> None:
    cluster.store.create(CONFIG_MAPS, "default", {"metadata": {"name": "c"}, "data": {"A": "a"}})
    env = [
        {"name": "ONE", "value": "1"},
        {"name": "TWO", "value": "$(ONE)2 $(NONE) $$(ONE)"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}},
        {"name": "GONE", "valueFrom": {"secretKeyRef": {"name": "no", "key": "A", "optional": True}}},
    ]
    script = "echo $TWO-$NODE-$CPUS-$KEY-$C_A-$GONE-$NVIDIA_VISIBLE_DEVICES; echo $0; pwd; echo $IP; hostname -I"
    container = {
        "name": "main", "image": "x", "env": env, "envFrom": [{"prefix": "C_", "configMapRef": {"name": "c"}}],
        "command": ["sh", "-c", script],
        "args": ["$(ONE)x"], "workingDir": "/made/here",
        "resources": {"limits": {"cpu": "1500m", "nvidia.com/gpu": "2"}},
    }  # fmt: skip
    objects.make_pod(cluster, "p", {"restartPolicy": "Never", "containers": [container]})
    pod = objects.wait_for_phase(cluster, "p", "Succeeded")
    first, argument, folder, address, own = objects.log(cluster, pod).split("\n")[:5]
    assert first == f"12 $(NONE) $(ONE)-{pod['spec']['nodeName']}-2-a-a--0,1"
    assert (argument, folder) == ("1x", "/made/here")
    assert address == own.strip() == pod["status"]["podIP"]


def test_init_containers_run_first_and_a_failed_one_ends_the_pod(cluster: KubernetesLab) -> None:
    first = {"name": "first", "image": "x", "command": ["sh", "-c", "echo ready > /scratch/x"]}
    mount = [{"name": "work", "mountPath": "/scratch"}]
    spec = {
        "restartPolicy": "Never",
        "volumes": [{"name": "work", "emptyDir": {}}],
        "initContainers": [first | {"volumeMounts": mount}],
        "containers": [objects.container("cat /scratch/x", volumeMounts=mount)],
    }
    objects.make_pod(cluster, "good", spec)
    broken = spec | {"initContainers": [first | {"command": ["false"]}]}
    objects.make_pod(cluster, "bad", broken)
    assert objects.log(cluster, objects.wait_for_phase(cluster, "good", "Succeeded")) == "ready\n"
    bad = objects.wait_for_phase(cluster, "bad", "Failed")
    status = bad["status"]
    told = trial_reasons.ended([bad])
    words = "The trial never began: its init container failed. The container first exited with code 1."
    assert told == WorkloadState(TrialState.FAILED, words)
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"


def test_a_container_that_fails_is_started_again_with_a_growing_delay(cluster: KubernetesLab) -> None:
    script = "echo run $(cat /scratch/n); echo x >> /scratch/n; test $(wc -l < /scratch/n) = 3"
    spec = {
        "restartPolicy": "OnFailure",
        "volumes": [{"name": "work", "emptyDir": {}}],
        "containers": [objects.container(script, volumeMounts=[{"name": "work", "mountPath": "/scratch"}])],
    }
    objects.make_pod(cluster, "p", spec)
    pod = objects.wait_for_phase(cluster, "p", "Succeeded")
    status = pod["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (2, 1)
    assert objects.log(cluster, pod, previous=True) == "run x\n"
    assert objects.log(cluster, pod) == "run x x\n"


@pytest.mark.parametrize(
    ("script", "reason", "code"),
    [
        ("exit 7", "Error", 7),
        ("kill -9 $$; sleep 1", "Completed", 0),  # the first process of a container is not killed by its own signals
        ("exec sh -c 'sh -c \"kill -9 1\"; exit 4'", "Error", 4),
    ],
)
def test_exit_codes_are_those_of_the_first_process(cluster: KubernetesLab, script: str, reason: str, code: int) -> None:
    objects.make_pod(cluster, "p", objects.pod_spec(script))
    wait_until(lambda: "terminated" in objects.state(cluster, "p"), "its end")
    found = objects.state(cluster, "p")["terminated"]
    assert (found["reason"], found["exitCode"]) == (reason, code)


def test_a_command_that_is_not_there_cannot_be_started(cluster: KubernetesLab) -> None:
    objects.make_pod(
        cluster, "p", {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x", "command": ["nope"]}]}
    )
    found = objects.wait_for_phase(cluster, "p", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (found["reason"], found["exitCode"]) == ("StartError", 128)
    assert '"nope": executable file not found in $PATH' in found["message"]


def test_a_deleted_pod_is_asked_to_end_and_killed_after_its_grace(cluster: KubernetesLab) -> None:
    polite = "trap 'echo asked; exit 0' TERM; echo up; while true; do sleep 0.02; done"
    deaf = "trap '' TERM; echo up; while true; do sleep 0.02; done"
    for name, script, grace_s in (("polite", polite, 600), ("deaf", deaf, 1)):
        objects.make_pod(cluster, name, objects.pod_spec(script, terminationGracePeriodSeconds=grace_s))
    for name in ("polite", "deaf"):
        wait_until(lambda name=name: objects.log(cluster, objects.pod(cluster, name)) == "up\n", "output")
    paths = {
        name: cluster.access.log_path(objects.pod(cluster, name), "main", previous=False) for name in ("polite", "deaf")
    }
    codes: dict[str, int] = {}

    def hear(event_type: str, resource: object, found: objects.Json) -> None:
        state = found.get("status", {}).get("containerStatuses", [{}])[0].get("state", {}) if resource == PODS else {}
        if "terminated" in state:
            codes[found["metadata"]["name"]] = state["terminated"]["exitCode"]

    cluster.store.subscribe(hear)
    for name in ("polite", "deaf"):
        cluster.store.delete(PODS, "default", name)
    for name in ("polite", "deaf"):
        wait_until(lambda name=name: objects.is_gone(lambda: objects.pod(cluster, name)), f"the end of {name}")
    cluster.store.unsubscribe(hear)
    assert codes == {"polite": 0, "deaf": 137}
    wait_until(lambda: not any(path and path.exists() for path in paths.values()), "logs that are removed")


def test_a_pod_has_a_deadline(cluster: KubernetesLab) -> None:
    objects.make_pod(
        cluster, "p", objects.pod_spec("exec sleep 100", activeDeadlineSeconds=1, terminationGracePeriodSeconds=0)
    )
    status = objects.wait_for_phase(cluster, "p", "Failed")["status"]
    assert status["reason"] == "DeadlineExceeded"


def test_more_memory_than_the_limit_is_oomkilled(cluster: KubernetesLab) -> None:
    script = "exec python3 -c 'import time; x = bytearray(200_000_000); time.sleep(60)'"
    limits = {"limits": {"memory": "100Mi"}}
    objects.make_pod(
        cluster, "p", {"restartPolicy": "Never", "containers": [objects.container(script, resources=limits)]}
    )
    found = objects.wait_for_phase(cluster, "p", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (found["reason"], found["exitCode"]) == ("OOMKilled", 137)


def test_an_image_that_is_missing_is_waited_for(cluster: KubernetesLab) -> None:
    cluster.images.missing.add("no/such:image")
    container = objects.container("echo here") | {"image": "no/such:image"}
    objects.make_pod(cluster, "p", {"restartPolicy": "Never", "containers": [container]})
    wait_until(lambda: objects.state(cluster, "p").get("waiting", {}).get("reason") == "ImagePullBackOff", "back-off")
    assert "not found" in objects.state(cluster, "p")["waiting"]["message"]
    cluster.images.missing.clear()
    objects.wait_for_phase(cluster, "p", "Succeeded")


def test_missing_objects_are_waited_for_and_told(cluster: KubernetesLab) -> None:
    volumes = [{"name": "c", "configMap": {"name": "late"}}]
    container = objects.container(
        "echo $A", env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    )
    objects.make_pod(cluster, "p", {"restartPolicy": "Never", "volumes": volumes, "containers": [container]})
    wait_until(
        lambda: any("late" in event["message"] for event in cluster.store.list(EVENTS, "default")[0]), "an event"
    )
    cluster.store.create(CONFIG_MAPS, "default", {"metadata": {"name": "late"}})
    reason = "CreateContainerConfigError"
    wait_until(lambda: objects.state(cluster, "p").get("waiting", {}).get("reason") == reason, reason)
    assert 'secret "s" not found' in objects.state(cluster, "p")["waiting"]["message"]


def test_a_log_is_rotated_at_its_limit(cluster: KubernetesLab) -> None:
    script = "head -c 12000000 /dev/zero | tr '\\0' x | fold -w 1000; echo; echo last"
    objects.make_pod(cluster, "p", objects.pod_spec(script))
    pod = objects.wait_for_phase(cluster, "p", "Succeeded")
    path = cluster.access.log_path(pod, "main", previous=False)
    assert path is not None
    assert path.stat().st_size < 10 * 1024 * 1024
    assert len(list(path.parent.iterdir())) == 2
    assert objects.log(cluster, pod).endswith("last\n")


def test_a_process_can_be_started_in_a_container(cluster: KubernetesLab) -> None:
    objects.make_pod(cluster, "p", objects.pod_spec("echo mine > /tmp/x; export A=b; sleep 100"))
    wait_until(lambda: "running" in objects.state(cluster, "p"), "its start")
    pod = objects.pod(cluster, "p")
    command = ["sh", "-c", "cat; while ! cat /tmp/x; do sleep 0.01; done; cat /proc/1/comm; hostname; exit 3"]
    process = cluster.access.exec(
        pod, "main", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    out, _ = process.communicate(timeout=60)
    assert (out.decode(), process.returncode) == ("mine\nsh\np\n", 3)


def test_termination_messages_are_in_the_status(cluster: KubernetesLab) -> None:
    objects.make_pod(cluster, "p", objects.pod_spec("echo why > /dev/termination-log; exit 1"))
    found = objects.wait_for_phase(cluster, "p", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert found["message"] == "why\n"
