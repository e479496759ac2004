"""The pod template of a trial: every option has its place, and none is a surprise."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.backends.kubernetes.options.kubernetes_options import KubernetesOptions
from jupyter_autotrain.backends.kubernetes.workloads.pod_template import PodProgram, pod_template
from jupyter_autotrain.core.spec import Resources, TrialSpec
from jupyter_autotrain.errors import BackendError

CODE = {"name": "code", "configMap": {"name": "code-1"}}
PROGRAM = PodProgram(
    ["python3", "-u", "/code/agent.zip"],
    env={"JUPYTER_AUTOTRAIN_NODE": "0"},
    volumes=[CODE],
    mounts=[{"name": "code", "mountPath": "/code", "readOnly": True}],
)


def checked(options: dict) -> dict:
    """Return the options as a profile keeps them."""
    return KubernetesOptions.model_validate(options).model_dump(mode="json", exclude_unset=True)


def spec(options: dict, resources: Resources = Resources(), program: PodProgram = PROGRAM, **more: object) -> dict:  # noqa: B008 - frozen
    trial = TrialSpec("20261122-digits", 1, 1, resources=resources, **more)
    return pod_template(trial, checked(options), program, {"app": "x"}).result["spec"]


def container(options: dict, resources: Resources = Resources(), **more: object) -> dict:  # noqa: B008 - frozen
    return spec(options, resources, **more)["containers"][0]


def test_without_options_there_is_one_container_without_a_token_of_the_cluster() -> None:
    assert spec({}) == {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "trial",
                "image": "python:3.12-slim",
                "command": ["python3", "-u", "/code/agent.zip"],
                "env": [
                    {"name": "JUPYTER_AUTOTRAIN_NODE", "value": "0"},
                    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"},
                ],
                "volumeMounts": [{"name": "code", "mountPath": "/code", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "code", "configMap": {"name": "code-1"}}],
    }


def test_requests_and_limits_are_the_same() -> None:
    needs = container({}, Resources(cpus=2.5, memory_bytes=2_000_000_000, gpus=2))["resources"]
    assert needs["limits"] == {"cpu": "2500m", "memory": "1908Mi", "nvidia.com/gpu": "2"}
    assert needs["requests"] == needs["limits"]


def test_a_trial_with_gpus_goes_to_nodes_that_have_them_and_sees_them() -> None:
    options = {"gpu_product": "NVIDIA-A100", "gpu_resource": "amd.com/gpu", "node_selector": {"pool": "a"}}
    found = spec(options, Resources(gpus=1))
    assert found["nodeSelector"] == {"pool": "a", "nvidia.com/gpu.product": "NVIDIA-A100"}
    assert found["tolerations"] == [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert found["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "1"}
    assert "NVIDIA_VISIBLE_DEVICES" not in str(found)
    assert "nvidia.com/gpu.product" not in str(spec(options))


def test_what_a_user_of_a_cluster_expects_is_where_kubernetes_has_it() -> None:
    found = spec({
        "service_account": "trainer", "priority_class": "low", "scheduler": "volcano", "image_pull_secrets": "login",
        "tolerations": ["dedicated=ml:NoSchedule", "spot", {"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}}, "image_pull_policy": "always", "shared_memory": "1GiB",
        "security_context": {"runAsUser": 1000, "fsGroup": 100, "allowPrivilegeEscalation": False},
    })  # fmt: skip
    assert found["serviceAccountName"] == "trainer"
    assert "automountServiceAccountToken" not in found
    assert (found["priorityClassName"], found["schedulerName"]) == ("low", "volcano")
    assert found["imagePullSecrets"] == [{"name": "login"}]
    assert found["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
        {"key": "a", "operator": "Exists"},
    ]
    assert found["affinity"] == {"nodeAffinity": {}}
    assert found["securityContext"] == {"runAsUser": 1000, "fsGroup": 100}
    trial = found["containers"][0]
    assert trial["securityContext"] == {"allowPrivilegeEscalation": False}
    assert trial["imagePullPolicy"] == "Always"
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}} in found["volumes"]
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in trial["volumeMounts"]


def test_each_kind_of_volume_is_mounted_at_its_path() -> None:
    found = spec({
        "volumes": [
            {"path": "/a", "pvc": "datasets", "read_only": True, "sub_path": "ada"},
            {"path": "/b", "nfs": "nfs.example.com:/team"},
            {"path": "/c", "host_path": "/mnt/fast"},
            {"path": "/d", "empty_dir": {"size": "1GiB", "medium": "memory"}},
            {"path": "/e", "secret": "licences"},
            {"path": "/f", "config_map": "settings"},
        ]
    })  # fmt: skip
    volumes = found["volumes"][1:]
    assert [volume.pop("name") for volume in volumes] == [f"volume-{number}" for number in range(1, 7)]
    assert volumes == [
        {"persistentVolumeClaim": {"claimName": "datasets"}},
        {"nfs": {"server": "nfs.example.com", "path": "/team"}},
        {"hostPath": {"path": "/mnt/fast"}},
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
        {"secret": {"secretName": "licences"}},
        {"configMap": {"name": "settings"}},
    ]
    mounts = found["containers"][0]["volumeMounts"][1:]
    assert mounts[0] == {"name": "volume-1", "mountPath": "/a", "subPath": "ada", "readOnly": True}
    assert [mount["mountPath"] for mount in mounts] == ["/a", "/b", "/c", "/d", "/e", "/f"]


def test_the_image_of_the_header_goes_before_that_of_the_profile() -> None:
    own = PythonEnvironment(EnvironmentKind.IMAGE, "pytorch:2.9")
    assert container({"image": "python:3.11"})["image"] == "python:3.11"
    assert container({"image": "python:3.11"}, python_environment=own)["image"] == "pytorch:2.9"


def test_secrets_come_from_an_object_and_never_as_text() -> None:
    program = PodProgram(["python3"], secret="trial-1", secret_variables=["TOKEN"])
    (trial,) = spec({}, Resources(gpus=1), program)["containers"]
    assert trial["env"] == [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "trial-1", "key": "TOKEN"}}},
    ]


def test_a_patch_of_the_pod_is_merged_by_name_and_keeps_what_is_ours() -> None:
    patch = {
        "spec": {
            "hostNetwork": True,
            "containers": [
                {"name": "trial", "env": [{"name": "DEBUG", "value": "1"}]}, {"name": "proxy", "image": "envoy"},
            ],
            "volumes": [{"name": "more", "emptyDir": {}}],
        }
    }  # fmt: skip
    found = spec({"pod_patch": patch})
    assert found["hostNetwork"] is True
    assert found["dnsPolicy"] == "ClusterFirstWithHostNet"  # else names of other pods are not found
    assert [one["name"] for one in found["containers"]] == ["trial", "proxy"]
    assert [one["name"] for one in found["containers"][0]["env"]][-1] == "DEBUG"
    assert [one["name"] for one in found["volumes"]] == ["code", "more"]


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        ({"containers": [{"name": "trial", "command": ["sleep"]}]}, r"spec.containers\[trial\].command"),
        ({"containers": [{"name": "trial", "$patch": "delete"}]}, r"spec.containers\[trial\]"),
        ({"volumes": [{"name": "code", "$patch": "delete"}]}, r"spec.volumes\[code\]"),
        (
            {"containers": [{"name": "trial", "volumeMounts": [{"mountPath": "/code", "$patch": "delete"}]}]},
            r"spec.containers\[trial\].volumeMounts\[/code\]",
        ),
        (
            {"containers": [{"name": "trial", "env": [{"name": "JUPYTER_AUTOTRAIN_NODE", "value": "1"}]}]},
            r"spec.containers\[trial\].env\[JUPYTER_AUTOTRAIN_NODE\]",
        ),
        ({"containers": None}, r"spec.containers\[trial\]"),
    ],
)  # fmt: skip
def test_a_patch_cannot_take_from_a_trial_what_it_needs(part: dict, lost: str) -> None:
    with pytest.raises(BackendError, match=f"`pod_patch` takes from the trial what it needs: {lost}"):
        spec({"pod_patch": {"spec": part}})


def test_an_item_of_a_patch_without_its_name_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(BackendError, match=r"spec.containers\[0\] has no name") as caught:
        spec({"pod_patch": {"spec": {"containers": [{"image": "x"}]}}})
    assert "there are trial" in caught.value.expected


def test_a_part_of_a_gpu_tolerates_the_taint_of_nodes_with_gpus() -> None:
    found = spec({"gpu_resource": "nvidia.com/mig-1g.5gb"}, Resources(gpus=1))["tolerations"]
    assert [one["key"] for one in found] == ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu"]
    assert len(spec({}, Resources(gpus=1))["tolerations"]) == 1
