"""Experiment files of NNI, of its versions 1 to 3, as settings of a header."""

from __future__ import annotations

import json

import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, Uniform
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import HeaderError
from jupyter_autotrain.header.nni.experiment_file import read_nni_file

NEW = """\
experimentName: mnist
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
  width: {_type: choice, _value: [128, 256]}
trialCommand: python3 mnist.py --epochs 2
trialCodeDirectory: code
trialGpuNumber: 0
trialConcurrency: 2
maxTrialNumber: 12
maxExperimentDuration: 1h
tuner: {name: TPE, classArgs: {optimize_mode: minimize}}
assessor: {name: Medianstop, classArgs: {start_step: 3}}
trainingService: {platform: local, useActiveGpu: true}
debug: true
"""
OLD = """\
authorName: default
experimentName: mnist
trialConcurrency: 1
maxExecDuration: 2h
maxTrialNum: 7
trainingServicePlatform: local
searchSpacePath: space.json
useAnnotation: false
tuner:
  builtinTunerName: Anneal
  classArgs: {optimize_mode: maximize}
trial: {command: python mnist.py, codeDir: ., gpuNum: 0}
"""


def written(tmp_path, text):
    (tmp_path / "config.yml").write_text(text)
    return tmp_path / "config.yml"


def spec(found):
    context = backends.header_context(found.folder, {})
    return header.from_mapping(found.settings, context).to_spec(bundle=Bundle(), name="x")


def test_a_file_of_version_3_becomes_the_settings_that_it_means(tmp_path):
    (tmp_path / "code").mkdir()
    found = read_nni_file(written(tmp_path, NEW))
    assert (found.command, found.folder) == ("python3 mnist.py --epochs 2", (tmp_path / "code").resolve())
    made = spec(found)
    assert (made.name, made.trials, made.concurrency, made.tuner, made.early_stop) == ("mnist", 12, 2, "tpe", "median")
    assert made.objective == Objective("default", Direction.MINIMIZE)
    assert made.search == {"lr": Uniform(0.0001, 0.1, log=True), "width": Choice((128, 256))}
    assert made.early_stop_options.warmup_steps == 3
    assert made.budget.time_s == 3600
    assert made.backends[0].options == {"use_active_gpu": True}
    assert found.notes == []


def test_a_file_of_version_1_with_its_search_space_beside_it_is_read_too(tmp_path):
    (tmp_path / "space.json").write_text(json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}}))
    found = read_nni_file(written(tmp_path, OLD))
    made = spec(found)
    assert (made.trials, made.concurrency, made.tuner, made.search) == (7, 1, "tpe", {"x": Uniform(0.0, 1.0)})
    assert found.notes == ["Its tuner Anneal becomes tpe."]


OPENPAI = """
  platform: openpai
  host: https://pai.example.org
  username: ada
  token: hunter2-hunter2
  trialCpuNumber: 2
  trialMemorySize: 8 GB
  storageConfigName: confignfs
  dockerImage: pytorch/pytorch
  localStorageMountPoint: /mnt/pai
  containerStorageMountPoint: /mnt/confignfs
  reuseMode: true
"""


def test_a_file_for_openpai_becomes_a_place_without_its_token(tmp_path):
    found = read_nni_file(written(tmp_path, NEW.replace(" {platform: local, useActiveGpu: true}", OPENPAI)))
    assert found.settings["backend"] == {
        "type": "openpai", "address": "https://pai.example.org", "user": "ada", "image": "pytorch/pytorch",
        "storage_name": "confignfs", "storage": {"local_path": "/mnt/pai", "mount_path": "/mnt/confignfs"},
    }  # fmt: skip
    made = spec(found)
    assert (made.resources.cpus, made.resources.memory_bytes) == (2.0, 8_000_000_000)
    (note,) = found.notes
    assert "clusters.yaml" in note
    assert "hunter2" not in f"{found}"


def test_a_file_for_dlts_becomes_a_place_whose_storage_is_beside_the_code(tmp_path):
    (tmp_path / "space.json").write_text(json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}}))
    dlts = (
        "dltsConfig: {dashboard: 'https://dlts.example.org', cluster: .default, team: vision, email: ada@example.org, "
        "password: hunter2-hunter2}\n"
    )
    text = OLD.replace("trainingServicePlatform: local", "trainingServicePlatform: dlts") + dlts
    found = read_nni_file(written(tmp_path, text.replace("gpuNum: 0", "gpuNum: 1, image: pytorch/pytorch")))
    folder = str(tmp_path.resolve().parent)
    assert found.settings["backend"] == {
        "type": "dlts", "address": "https://dlts.example.org", "cluster": ".default", "team": "vision",
        "image": "pytorch/pytorch", "storage": {"local_path": folder, "mount_path": folder},
    }  # fmt: skip
    assert spec(found).resources.gpus == 1
    assert any("~/.netrc" in note for note in found.notes)
    assert "hunter2" not in f"{found}"


AML = """
  platform: aml
  subscriptionId: 7a6b2c1d
  resourceGroup: research
  workspaceName: vision
  computeTarget: gpu-cluster
  dockerImage: msranni/nni
  maxTrialNumberPerGpu: 2
"""


def test_a_file_for_azure_becomes_a_place_with_its_workspace(tmp_path):
    found = read_nni_file(written(tmp_path, NEW.replace(" {platform: local, useActiveGpu: true}", AML)))
    assert found.settings["backend"] == {
        "type": "aml", "subscription": "7a6b2c1d", "resource_group": "research", "workspace": "vision",
        "compute": "gpu-cluster", "image": "msranni/nni",
    }  # fmt: skip
    assert spec(found).trials == 12
    assert found.notes == ["Without a counterpart are its training service's max_trial_number_per_gpu."]


DLC = """
  platform: dlc
  type: Worker
  image: team/pytorch
  jobType: PyTorchJob
  podCount: 1
  ecsSpec: ecs.c6.large
  region: cn-hangzhou
  workspaceId: '38199'
  accessKeyId: LTAI5thunter2
  accessKeySecret: hunter2-hunter2
  nasDataSourceId: d-nas1
  ossDataSourceId: d-oss1
  localStorageMountPoint: /mnt/nas/workspace
  containerStorageMountPoint: /mnt/data
"""


def test_a_file_for_pai_dlc_becomes_a_place_without_its_key(tmp_path):
    found = read_nni_file(written(tmp_path, NEW.replace(" {platform: local, useActiveGpu: true}", DLC)))
    assert found.settings["backend"] == {
        "type": "dlc", "region": "cn-hangzhou", "workspace": "38199", "image": "team/pytorch",
        "instance": "ecs.c6.large", "job_type": "PyTorchJob", "data_sources": [{"id": "d-nas1"}, {"id": "d-oss1"}],
        "storage": {"local_path": "/mnt/nas/workspace", "mount_path": "/mnt/data"},
    }  # fmt: skip
    assert spec(found).resources.nodes == 1
    assert found.notes == [
        "Its access_key_id and access_key_secret stays in the file: the place takes it from "
        "~/.alibabacloud/credentials.",
        "Without a counterpart are its training service's type.",
    ]
    assert "hunter2" not in f"{found}"


def test_remote_machines_become_hosts_of_ssh(tmp_path):
    remote = (
        "{platform: remote, machineList: [{host: a, user: ada, port: 2222, password: x}, {host: b}], reuseMode: false}"
    )
    found = read_nni_file(written(tmp_path, NEW.replace("{platform: local, useActiveGpu: true}", remote)))
    assert found.settings["backend"] == {
        "type": "ssh", "hosts": [{"host": "a", "user": "ada", "port": 2222}, {"host": "b"}],
    }  # fmt: skip
    assert "password" not in str(found.settings)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("trialCommand: python3 mnist.py --epochs 2\n", "", "is not an experiment file of NNI: it has no trialCommand"),
        ("maxTrialNumber", "maxTrialNumbr", "max_trial_numbr has no counterpart here"),
        ("name: TPE", "name: TPEE", "Did you mean tpe?"),
        ("platform: local", "platform: moon", "runs on moon"),
        ("debug: true", "useAnnotation: true", "has useAnnotation"),
        ("searchSpace:\n", "searchSpaceFile: none.json\nx:\n", "none.json cannot be read"),
        ("{name: TPE", "{{name: TPE", "cannot be read"),
    ],
)
def test_what_has_no_counterpart_is_told(tmp_path, old, new, told):
    with pytest.raises(HeaderError) as error:
        read_nni_file(written(tmp_path, NEW.replace(old, new)))
    assert told in str(error.value)


def test_a_cell_takes_its_settings_from_a_file_of_nni(tmp_path):
    written(tmp_path, NEW)
    context = backends.header_context(tmp_path, {})
    made = header.parse_cell("-f config.yml", "trials: 3\n---\nimport nni\n", context).header.to_spec(
        bundle=Bundle(), name="x"
    )
    assert (made.trials, made.concurrency, list(made.search)) == (3, 2, ["lr", "width"])
