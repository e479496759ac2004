"""Tests of what Ray is sent for a trial, and what its words mean."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.package import zipped
from jupyter_autotrain.backends.services.ray import reasons
from jupyter_autotrain.backends.services.ray.backend import RayBackend
from jupyter_autotrain.backends.services.ray.service import RayService
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources
from jupyter_autotrain.testing import trial_of


def test_a_trial_is_two_requests_its_package_and_its_job(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2-hunter2")
    home = Home(tmp_path / "home")
    options: JsonObject = {"address": "http://head:8265", "gpu_type": "A100", "runtime_env": {"pip": ["einops"]}}
    options = {**options, "login_file": str(tmp_path / "token")}
    backend = RayBackend(Profile("lab", "ray", options), BackendContext(home))
    trial = trial_of(home, "", params={"lr": 0.5}, resources=Resources(cpus=2, gpus=1, memory_bytes=1 << 30))
    shown = backend.render(trial, Placement((NodePlacement("10.0.0.7"),))).files["requests.txt"]
    assert "hunter2" not in shown
    first, second = shown.split("\n\nPOST ", 1)
    assert first.startswith("PUT http://head:8265/api/packages/gcs/_ray_pkg_")
    uri = first.partition("\n")[0].rpartition("/")[2]
    assert second.startswith("http://head:8265/api/jobs/\nAuthorization: ***\n")
    body = json.loads(second.partition("\n\n")[2])
    name = body["submission_id"]
    trial_text = body["runtime_env"]["env_vars"].pop("AUTOTRAIN_TRIAL")
    assert json.loads(trial_text)["params"] == {"lr": 0.5}
    assert body == {
        "entrypoint": f"exec python3 -I -S -u agent.zip /tmp/{name}",
        "entrypoint_memory": 1 << 30, "entrypoint_num_cpus": 2, "entrypoint_num_gpus": 1,
        "entrypoint_resources": {"accelerator_type:A100": 0.001, "node:10.0.0.7": 0.001},
        "metadata": {"jupyter_autotrain": "e1-1-1"}, "submission_id": name,
        "runtime_env": {
            "env_vars": {
                "AUTOTRAIN_POD": '{"is_container": false, "lingers": false, "nodes": 1, "pause_s": 0.25}',
                "PYTHONUNBUFFERED": "1", "RAY_JOB_STOP_WAIT_TIME_S": "60",
            },
            "pip": ["einops"], "working_dir": f"gcs://{uri}",
        },
    }  # fmt: skip


def test_on_several_nodes_each_has_a_job_that_knows_where_the_first_is(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    backend = RayBackend(Profile("lab", "ray"), BackendContext(home))
    placement = Placement((NodePlacement("10.0.0.7"), NodePlacement("10.0.0.8")))
    shown = backend.render(trial_of(home, "", resources=Resources(nodes=2)), placement).files["requests.txt"]
    jobs = [json.loads(part.partition("\n\n")[2].partition("\n\n")[0]) for part in shown.split("POST ")[1:]]
    name = jobs[0]["submission_id"]
    assert [job["submission_id"] for job in jobs] == [name, f"{name}-1"]
    assert [list(job["entrypoint_resources"]) for job in jobs] == [["node:10.0.0.7"], ["node:10.0.0.8"]]
    variables = [job["runtime_env"]["env_vars"] for job in jobs]
    assert [one["AUTOTRAIN_NODE"] for one in variables] == ["0", "1"]
    assert {one["AUTOTRAIN_FIRST_ADDRESS"] for one in variables} == {"10.0.0.7"}
    (port,) = {int(one["AUTOTRAIN_FIRST_PORT"]) for one in variables}
    assert 22_000 <= port < 32_000
    told = json.loads(variables[1]["AUTOTRAIN_POD"])
    assert (told["nodes"], told["variables"]["rank"]) == (2, "AUTOTRAIN_NODE")


def test_trials_of_an_experiment_share_one_package(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    backend = RayBackend(Profile("lab", "ray"), BackendContext(home))
    first, second = (
        backend.render(trial_of(home, "x = 1", number=number), Placement()).files["requests.txt"].partition("\n")[0]
        for number in (1, 2)
    )
    assert first == second


def test_a_package_is_a_zip_file_that_is_the_same_for_the_same_files() -> None:
    files = {"b": b"2", "a": b"1"}
    content = zipped(files)
    assert content == zipped(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


def test_the_token_comes_from_where_rays_own_tools_keep_it(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("of-file\n")
    assert RayService({"login_file": str(token)})._headers() == {"Authorization": "Bearer of-file"}
    assert RayService({"login_file": str(tmp_path / "none")})._headers() == {}


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"status": "PENDING"}, "waits in Ray for a node with what it asks for"),
        ({"status": "STOPPED"}, "Somebody has stopped its job in Ray."),
        (
            {"status": "FAILED", "error_type": "RUNTIME_ENV_SETUP_FAILURE", "message": "a\npip failed: no einop"},
            "Ray could not make the runtime_env of its job: pip failed: no einop",
        ),
        ({"status": "FAILED", "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "message": "x"}, ""),
        ({"status": "FAILED", "message": "strange"}, "Ray says of its job: strange"),
    ],
)  # fmt: skip
def test_rays_own_reason_is_told_in_plain_words(details: dict[str, str], told: str) -> None:
    assert reasons.plain(details).text == told


def test_a_job_that_got_no_node_in_time_is_tried_again() -> None:
    found = reasons.plain({"status": "FAILED", "error_type": "JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "message": "15 min"})
    assert found.is_for_lack_of_a_node
    assert "no node for it in time" in found.text
