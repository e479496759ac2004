"""Each key of the header changes what is captured, submitted or planned; one that does nothing is an error."""

from __future__ import annotations

import ast
import copy
import dataclasses
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import jupyter_autotrain
from jupyter_autotrain import backends, header
from jupyter_autotrain.cell import submission
from jupyter_autotrain.client import submission as pipeline
from jupyter_autotrain.client.check import CheckedSpec
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.waiting import in_terminal
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Budget, Bundle, ExperimentSpec, Origin, Resources
from jupyter_autotrain.core.tuner import EarlyStopOptions
from jupyter_autotrain.errors import HeaderError
from tests.projects import trust_project

SCHEMA = backends.header_schema()
ENVIRON = {"WANDB_PROJECT": "digits", "HF_TOKEN": "x"}
BASE = {
    "objective": "maximize acc",
    "search": {"lr": "uniform(0, 1)"},
    "early_stop": {"rule": "median"},
    "resources": {"gpus": 2, "workers_per_node": 2},
    "launcher": "torchrun",
    "hooks": {"bell": {"command": ["sh", "tell.sh"]}, "mail": {"command": ["sh", "mail.sh"]}},
    "parallel": {"model": "net", "inputs": "batch", "cluster": "8xA100"},
}
FEDERATED = {"mode": "federated", "clients": ["local", "local", "local"], "federated": {"rounds": 5}}
OTHER_VALUES = {
    "name": "digits",
    "hooks": {"bell": {"url": "${SLACK_URL}"}},
    "notify": ["bell"],
    "backend": "debug",
    "objective": "minimize acc",
    "search": {"lr": "uniform(0, 2)"},
    "tuner": "random",
    "constraints": ["ms <= 20"],
    "early_stop": "asha",
    "early_stop.rule": "asha",
    "early_stop.warmup_steps": 5,
    "early_stop.min_trials": 7,
    "early_stop.lower": 0.1,
    "early_stop.upper": 10,
    "early_stop.patience": 5,
    "early_stop.min_delta": 0.01,
    "early_stop.options": {"n_startup_trials": 3},
    "trials": 40,
    "concurrency": 4,
    "priority": 5,
    "weight": 3,
    "launcher": "mpi",
    "elastic": True,
    "resources": {"gpus": 2},
    "resources.cpus": 2,
    "resources.nodes": 2,
    "resources.workers_per_node": 1,
    "resources.memory": "8GB",
    "resources.gpus": 4,
    "resources.gpu_memory": "16GB..",
    "resources.adjacent": "ring",
    "timeout": "30m",
    "stall": "20m",
    "track": "mlflow",
    "post_mortem": True,
    "budget": {"time": "2h"},
    "budget.time": "2h",
    "budget.failures": 3,
    "seed": 1,
    "env": {"OMP_NUM_THREADS": 1},
    "environment": "match",
    "environment.match": True,
    "environment.python": "/opt/venv/bin/python",
    "environment.conda": "torch2",
    "environment.requirements": "needs.txt",
    "environment.image": "python:3.12",
    "pass_env": ["WANDB_PROJECT"],
    "secrets": ["HF_TOKEN"],
    "not_secrets": ["pad_token"],
    "ship": ["data/*.csv"],
    "ship.files": ["data/*.csv"],
    "ship.ignore": ["*.tmp"],
    "ship.limits": {"size": "1GB"},
    "ship.limits.files": 5000,
    "ship.limits.size": "1GB",
    "data": {"images": {"path": "/mnt/imagenet"}},
    "autolog": False,
    "returns": ["model"],
    "fetch_limit": "1GB",
    "on_rerun": "stop",
    "start_from": "digits#3",
    "retries": 2,
    "slurm": {"partition": "gpu"},
    "slurm.partition": "gpu",
    "slurm.account": "lab42",
    "slurm.time": "8h",
    "slurm.gpu_type": "a100",
    "slurm.extra": ["--qos=long"],
    "setup": [1],
    "slurm.setup": ["module load cuda"],
    "slurm.requeue": True,
    "ray": {"gpu_type": "A100"},
    "ray.gpu_type": "A100",
    "ray.resources": {"fast_disk": 1},
    "ray.labels": {"market-type": "spot"},
    "ray.runtime_env": {"pip": ["einops"]},
    "openpai": {"sku": "K80"},
    "openpai.virtual_cluster": "research",
    "openpai.sku": "K80",
    "openpai.shared_memory": "4GB",
    "dlc": {"instance": "ecs.c6.large"},
    "dlc.instance": "ecs.c6.large",
    "dlc.gpu_type": "V100",
    "dlc.priority": 5,
    "dlc.shared_memory": "4GB",
    "dlts": {"gpu_type": "P40"},
    "dlts.gpu_type": "P40",
    "dlts.preemptible": True,
    "aml": {"instance_type": "Standard_NC6s_v3"},
    "aml.instance_type": "Standard_NC6s_v3",
    "aml.shared_memory": "4GB",
    "aml.experiment_name": "digits",
    "local": {"max_trials_per_gpu": 2},
    "local.max_trials_per_gpu": 2,
    "local.use_active_gpu": True,
    "local.gpu_indices": [0, 1],
    "local.data_cache_limit": "5GB",
    "local.reuse": False,
    "local.reuse_idle": "5m",
    "local.reuse_memory": "1GB",
    "parallel": {"model": "net", "inputs": "batch", "cluster": "16xA100"},
    "parallel.cluster": "16xA100",
    "parallel.mode": "data_parallel",
    "parallel.search": "dynamic_programming",
    "parallel.memory_limit": "80GB",
    "parallel.model": "other",
    "parallel.workers": 2,
    "parallel.mesh": {"dp": 2, "tp": 4},
    "parallel.mesh.data": 2,
    "parallel.mesh.tensor": 2,
    "parallel.mesh.expert": 2,
    "parallel.mesh.pipeline": 2,
    "parallel.simplicity": 0.1,
    "parallel.inputs": "other",
    "mode": "federated",
    "clients": ["debug", "debug"],
    "federated": {"rounds": 3},
    "federated.rounds": 3,
    "federated.engine": "flower",
    "federated.superlink": "lab",
    "federated.strategy": "fedprox",
    "federated.min_clients": 3,
    "federated.fraction": 0.5,
    "federated.deadline": "10m",
    "federated.secure": True,
    "federated.privacy": {"clip": 2},
    "federated.privacy.clip": 2,
    "federated.privacy.noise": 2,
    "federated.privacy.delta": 1e-6,
    "federated.mu": 0.3,
    "federated.server_lr": 0.3,
    "federated.trim": 0.3,
    "federated.malicious": 1,
    "federated.most_norm": 3,
}
KUBERNETES = {
    "service_account": "trainer",
    "labels": {"team": "vision"},
    "annotations": {"team": "vision"},
    "node_selector": {"pool": "training"},
    "tolerations": ["spot:NoSchedule"],
    "affinity": {"podAntiAffinity": {}},
    "priority_class": "low",
    "queue": "team-a",
    "shared_memory": "8GB",
    "gpu_resource": "amd.com/gpu",
    "gpu_product": "A100",
    "linger": "5m",
    "ttl": "1d",
    "start_timeout": "30m",
    "pod_patch": {"spec": {"hostNetwork": True}},
    "patch": {"spec": {"backoffLimit": 2}},
}
KUBERNETES_TYPES = {
    "kubernetes": {},
    "kubeflow": {"kind": "PyTorchJob", "runtime": "torch-distributed"},
    "adaptdl": {
        "min_replicas": 1,
        "max_replicas": 8,
        "preemptible": False,
        "checkpoint": {"size": "10GB"},
        "checkpoint.storage_class": "nfs-client",
        "checkpoint.size": "10GB",
    },
    "frameworkcontroller": {
        "task_roles": [{"name": "chief"}],
        "task_roles.name": "chief",
        "task_roles.task_number": 3,
        "task_roles.min_failed_tasks": -1,
        "task_roles.min_succeeded_tasks": 1,
        "max_retry_count": 2,
        "fancy_retry_policy": True,
        "pod_deletion_timeout": "1m",
    },
}
for type_name in sorted(set(KUBERNETES_TYPES) & set(SCHEMA.backend_sections)):
    OTHER_VALUES[type_name] = {"queue": "team-a"}
    for option, value in (KUBERNETES | KUBERNETES_TYPES[type_name]).items():
        OTHER_VALUES[f"{type_name}.{option}"] = value
SHARED = {"image": "python:3.12", "storage": {"local_path": "/mnt/pai", "mount_path": "/mnt/confignfs"}}
SERVICES = {
    "openpai": {"type": "openpai", "address": "https://pai.example.org", "user": "ada", **SHARED},
    "dlc": {"type": "dlc", "region": "cn-hangzhou", "workspace": "123456", **SHARED},
    "dlts": {"type": "dlts", "address": "https://dlts.example.org", "team": "vision", **SHARED},
    "aml": {
        "type": "aml",
        "subscription": "7a6b2c1d",
        "resource_group": "research",
        "workspace": "vision",
        "compute": "cluster",
        "image": "python:3.12",
    },
}
LISTS = {"frameworkcontroller.task_roles"}  # whose keys are those of their items


@pytest.fixture
def effects(monkeypatch, tmp_path):
    """Return what a header leads to: all that capture, submission and planning receive."""
    found = []

    def capture(*arguments, progress=None, **options):
        found.append((arguments, options))
        return SimpleNamespace(reports=None, bundle=Bundle(), captured=())

    def record(*arguments):
        found.append(arguments)

    def planner(request):
        record(request)
        return SimpleNamespace(cluster=SimpleNamespace(devices=request.workers or 1))

    notebook = SimpleNamespace(
        namespace=lambda *_: {}, executed_cells=lambda _: [], origin=lambda *_: Origin(), name=lambda _: "cell"
    )
    monkeypatch.setattr(submission, "notebook", notebook)
    monkeypatch.setattr(submission.capture, "capture", capture)
    monkeypatch.setattr(submission.capture, "check_reports", lambda _, metric, autolog: record((metric, autolog)))
    monkeypatch.setattr(pipeline, "check", lambda spec, _, patience: CheckedSpec(spec))
    monkeypatch.setattr(pipeline, "check_packages", lambda *_, **__: None)
    monkeypatch.setattr(pipeline, "find_source", lambda reference, *_: reference)
    monkeypatch.setattr(pipeline, "before_rerun", lambda *arguments: record(arguments[3]))
    monkeypatch.setattr(pipeline, "send", lambda _, spec, *rest, **more: record(dataclasses.replace(spec, header="")))

    (tmp_path / "needs.txt").write_text("six\n")

    def of(settings):
        found.clear()
        cell = f"{json.dumps(settings)}\n---\nreport(acc=1)"
        draft = submission.read(None, "--dry-run", cell, cwd=tmp_path, environ=ENVIRON, planner=planner)
        pipeline.submit_draft(draft, Home(tmp_path), Dialogue(print, input), in_terminal(io.StringIO()))
        return copy.copy(found)

    return of


def base_of(key):
    """Return the settings that a key is added to; a backend's section needs that backend, a mode's its mode."""
    section = key.partition(".")[0]
    if section in FEDERATED:
        return {name: value for name, value in FEDERATED.items() if name != key}
    return BASE | ({"backend": SERVICES.get(section, section)} if section in SCHEMA.backend_sections else {})


def with_value(key, value):
    settings = copy.deepcopy(base_of(key)) | (FEDERATED if key in FEDERATED else {})
    *sections, last = key.split(".")
    inner = settings
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    if ".".join(sections) in LISTS:
        settings[sections[0]][sections[1]] = [inner]
    return settings


@pytest.mark.parametrize("key", header.known_keys(SCHEMA))
def test_every_key_changes_what_is_captured_submitted_or_planned(effects, key):
    base = {} if key in {"mode", "clients"} else base_of(key)  # either alone is refused
    assert effects(with_value(key, OTHER_VALUES[key])) != effects(base)


def test_no_value_is_kept_for_a_key_that_is_gone():
    assert set(OTHER_VALUES) == set(header.known_keys(SCHEMA))


def attributes_read():
    """Attributes that the package reads: the name of what each is read from, and its own."""
    root = Path(jupyter_autotrain.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        if path.is_relative_to(root / "header") or path == root / "core/spec.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                owner = getattr(node.value, "id", None) or getattr(node.value, "attr", "")
                found.add((owner, node.attr))
    return found


def test_every_field_of_a_spec_is_read_by_the_program():
    read = attributes_read()
    of_specs = {name for owner, name in read if owner in {"spec", "experiment"}}
    assert not {field.name for field in dataclasses.fields(ExperimentSpec)} - of_specs
    parts = {field.name for part in (Resources, Budget, EarlyStopOptions) for field in dataclasses.fields(part)}
    assert not parts - {name for _, name in read}


def faults(cell, line=""):
    with pytest.raises(HeaderError) as caught:
        header.parse_cell(line, cell, header.HeaderContext(schema=SCHEMA))
    return list(caught.value.faults)


def test_a_plan_without_a_cell_is_an_error_that_says_what_to_call():
    cell = "trials: 1\nparallel: {cluster: 8xA100}\n---\nx = 1"
    for line in ("", "--check", "--dry-run"):
        assert header.parse_cell(line, cell, header.HeaderContext(schema=SCHEMA)).header.parallel is not None
    with pytest.raises(HeaderError, match=r"call at\.plan"):
        header.from_mapping({"parallel": {"cluster": "8xA100"}})


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("reuse: true", "each trial has a process of its own"),
        ("reuseMode: true", "each trial has a process of its own"),
        ("version: 1", "there is one format of headers"),
    ],
)
def test_keys_that_never_did_anything_are_errors_with_their_line(setting, says):
    (fault,) = faults(f"trials: 1\n{setting}\n---\nx = 1")
    assert fault.startswith("line 3: ")
    assert says in fault
    assert fault.endswith("remove this line")


def test_options_of_another_backend_are_an_error_in_a_cell_and_not_in_a_file(tmp_path):
    cell = "backend: debug\nlocal: {use_active_gpu: true}\n---\nx = 1"
    assert faults(cell) == [
        "line 3: options of local with backend 'debug'; expected options of debug; remove them, or set backend: local"
    ]
    (tmp_path / "autotrain.yaml").write_text("local: {use_active_gpu: true}\n")
    context = header.HeaderContext(tmp_path, {"HOME": str(tmp_path)}, schema=SCHEMA)
    trust_project(tmp_path, context.environ)
    assert header.parse_cell("", "backend: debug\n---\nx = 1", context).header.choices[0].options == {}
