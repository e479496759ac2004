"""The contract of backends on a double of OpenPAI, and its faults."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.openpai.backend import OpenpaiBackend
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from tests.labs.openpai_double import TOKEN, USER, OpenpaiDouble
from tests.labs.service_jobs import JobRunner
from tests.services.on_a_double import WAITS, OnADouble, ServiceFaults
from tests.services.searches import search_with_a_killed_manager
from tests.services.several_nodes import SeveralNodes

WIDE = """%%autotrain
name: wide
backend: lab
resources: {nodes: 2}
---
import os
"""
REPORTS = """
report(all_ranks="sum", total=scale * (rank + 1))
report(world=world_size)
print("rank", rank, "on node", os.environ["NODE_RANK"])
"""
REDUCES = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.full((1,), float(scale * (rank + 1)))
dist.all_reduce(total)
report(total=float(total), world=dist.get_world_size())
print("rank", rank, "on node", os.environ["NODE_RANK"])
dist.destroy_process_group()
"""
NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


class OnOpenpai(OnADouble):
    """Backends on one double of OpenPAI."""

    backend_type = OpenpaiBackend
    kind = "openpai"
    double: OpenpaiDouble

    def make_double(self, runner: JobRunner) -> OpenpaiDouble:
        double = OpenpaiDouble(runner)
        self.login.write_text(json.dumps([{"pai_uri": double.address, "user": USER, "token": TOKEN}]))
        return double

    def options(self) -> JsonObject:
        return {
            "address": self.double.address, "user": USER, "image": "python:3.12", "python": sys.executable,
            "login_file": str(self.login), "storage": self.shared_storage,
        }  # fmt: skip


@pytest.mark.long
class TestContract(OnOpenpai, BackendContract):
    """All of the contract."""

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("OpenPAI gives GPUs to its containers, and the double has none")


@pytest.mark.long
class TestNodes(OnOpenpai, SeveralNodes):
    """Trials on several nodes."""


class TestNodesOfACell(OnOpenpai):
    """What a person asks for, and gets."""

    def test_the_job_has_a_task_for_each_node_and_a_port(self, backend: Backend, home: Home) -> None:
        shown = backend.render(trial_of(home, "", resources=Resources(nodes=2, gpus=1)), Placement())
        task = json.loads(shown.files["request.txt"].partition("\n\n")[2])["taskRoles"]["trial"]
        assert task["instances"] == 2
        assert task["completion"] == {"minFailedInstances": 1, "minSucceededInstances": 2}
        assert task["resourcePerInstance"] == {"cpu": 1, "gpu": 1, "memoryMB": 4096, "ports": {"nodes": 1}}

    @pytest.mark.parametrize("cell", [REPORTS, pytest.param(REDUCES, marks=[pytest.mark.long, NEEDS_TORCH])])
    def test_two_nodes_of_a_trial_from_a_cell_reduce_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            made.run("scale = 10")
            shown = made.run(WIDE + cell)
            found = made.value("__import__('jupyter_autotrain').attach('wide')")
            assert isinstance(found, Experiment)
            wait_until(lambda: found.store.experiment(found.id).state.is_final, f"the end; {shown}", within_s=240)
            assert [trial.state for trial in found.trials] == [TrialState.SUCCEEDED], made.run("%autotrain why wide")
            values = {point.name: point.value for point in found.store.points(found.id)}
            assert values == {"total": 30.0, "world": 2.0}
            logs = [made.run(f"%autotrain logs wide --rank {rank}") for rank in range(2)]
        assert ["rank 0 on node 0" in logs[0], "rank 1 on node 1" in logs[1]] == [True, True], logs
        (job,) = self.double.runner.jobs.values()
        assert len(job.workers) == 2


class TestFaults(OnOpenpai, ServiceFaults):
    """Faults of any service."""

    def expire_login(self) -> None:
        self.double.token = "another"

    def renew_login(self) -> None:
        self.double.token = TOKEN


class TestRequests(OnOpenpai):
    """Requests to OpenPAI, and what is made of its refusals."""

    def test_a_search_goes_there_and_back_with_logs_that_have_newlines_within_lines(
        self, backend: Backend, home: Home
    ) -> None:
        code = (
            "for step in range(400):\n    print('line', step, 'x' * 60, flush=True)\n    report(step=step, loss=step)"
        )
        ref, status = self.run(backend, home, code)
        assert (status.state, status.reason) == (TrialState.SUCCEEDED, "")
        assert [step for step, _ in self.points(backend, ref)] == list(range(400))
        assert len(self.read(backend, ref, wire.STDOUT).splitlines()) == 400
        wait_until(lambda: not list((self.storage / "jupyter-autotrain" / "jobs").iterdir()), "an empty folder")

    def test_what_a_rotated_log_has_lost_comes_from_the_running_trial(self, backend: Backend, home: Home) -> None:
        self.double.kept_bytes = 64 << 10
        code = "import time\nfor k in range(300):\n    print('x' * 1000, flush=True)\n    report(step=k, loss=1)\n"
        waits = "print('begun', flush=True)\nwhile not should_stop(): time.sleep(0.01)"
        ref = self.start(backend, home, code + waits)
        self.begun(self.make(BackendContext(home)), ref)
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert [step for step, _ in self.points(backend, ref)] == list(range(300))
        assert self.read(backend, ref, wire.STDOUT).count(b"x" * 1000 + b"\n") == 300

    def test_an_end_that_the_log_has_lost_comes_from_the_job_that_waits(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        os.truncate(self.double.runner.jobs[str(ref.data["name"])].folder / "log", 0)  # the next line is in a hole
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED

    def test_a_search_from_a_cell_goes_there_and_a_killed_manager_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            search_with_a_killed_manager(made, tmp_path)
        assert len(self.double.runner.started) == 2

    def test_the_job_is_what_the_golden_one_is(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "", resources=Resources(cpus=1.5, gpus=2, memory_bytes=2 << 30))
        shown = backend.render(trial, Placement()).files["request.txt"]
        assert TOKEN not in shown
        head, _, body = shown.partition("\n\n")
        assert head == (
            f"POST {self.double.address}/rest-server/api/v2/jobs\nAuthorization: ***\nContent-Type: text/yaml"
        )
        job = json.loads(body)
        commands = job["taskRoles"]["trial"].pop("commands")
        assert commands[1] == "export PYTHONUNBUFFERED=1"
        assert commands[2].startswith(f"exec {sys.executable} -I -S -u {self.mounted}/jupyter-autotrain/packages/")
        assert commands[2].endswith(f" /tmp/{job['name']} {self.mounted}/jupyter-autotrain/jobs/{job['name']}")
        assert job == {
            "defaults": {"virtualCluster": "default"}, "extras": {}, "jobRetryCount": 0, "name": job["name"],
            "prerequisites": [
                {"name": "image", "protocolVersion": 2, "type": "dockerimage", "uri": "python:3.12"}
            ],
            "protocolVersion": 2, "type": "job",
            "taskRoles": {"trial": {
                "completion": {"minFailedInstances": 1, "minSucceededInstances": 1}, "dockerImage": "image",
                "instances": 1, "resourcePerInstance": {"cpu": 2, "gpu": 2, "memoryMB": 2048}, "taskRetryCount": 0,
            }},
        }  # fmt: skip

    def test_a_job_that_is_missing_in_a_list_is_found_by_its_name(self, backend: Backend, home: Home) -> None:
        self.double.forgets_list = True
        assert self.run(backend, home, "report(loss=1)")[1].state is TrialState.SUCCEEDED

    def test_a_check_says_step_by_step_what_to_do(self, backend: OpenpaiBackend) -> None:
        assert [step.name for step in backend.check_steps()] == ["address", "token", "virtual cluster", "storage"]
        self.storage.rmdir()
        (*_, last) = backend.check_steps()
        assert not last.is_good
        assert "local_path:" in last.action
        self.double.token = "another"
        (*_, last) = backend.check_steps()
        assert (last.name, last.is_good) == ("token", False)
        assert str(self.login) in last.action
        assert TOKEN not in f"{last}"


del BackendContract, OnADouble, ServiceFaults, SeveralNodes
