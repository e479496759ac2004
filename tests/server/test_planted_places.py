"""A planted project file beside the notebooks: opening Places runs nothing of it, and asks whether it is trusted."""

from __future__ import annotations

import pytest

from tests.server.jupyter import problem_of


def test_no_request_about_places_runs_what_a_planted_file_names(server):
    ran = server.root.parent / "ran"
    program = server.root / "planted.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    config = server.root / "ssh_config"
    config.write_text(f"Host *\n  ProxyCommand {program}\nMatch exec {program}\n")
    project = server.root / "autotrain.yaml"
    project.write_text("backends:\n  planted: {type: ssh, hosts: [h1], config_file: ./ssh_config}\n")
    try:
        (row,) = [row for row in server.get("/backends")["backends"] if row["name"] == "planted"]
        assert "is not trusted yet" in row["faults"][0]
        answer = server.ask("GET", "/backends/planted/inventory")
        assert answer.status_code >= 400
        assert "trust-project" in answer.text
        server.ask("POST", "/backends/planted/check", json={})
    finally:
        for file in (project, program, config):
            file.unlink()
    assert not ran.exists()


@pytest.fixture
def project(server):
    path = server.root / "autotrain.yaml"
    path.write_text("backends:\n  lab: {type: ssh, hosts: [h1]}\nenv: {A: '1'}\ntrials: 3\n")
    yield path
    path.unlink()


def places(server):
    return {row["name"]: row["faults"] for row in server.get("/backends")["backends"]}


def test_what_a_project_file_would_do_is_told_and_agreed_to_as_it_was_seen(server, project):
    asked = server.get("/project")
    assert (asked["path"], asked["is_trusted"], asked["fault"]) == (str(project), False, "")
    assert asked["effects"] == ['place lab: {"type": "ssh", "hosts": ["h1"]}', 'env: {"A": "1"}']
    project.write_text(project.read_text().replace("h1", "h2"))
    refused = server.ask("POST", "/project", json={"digest": asked["digest"]})
    assert problem_of(refused)["status"] == 409
    assert "has changed: its digest is" in refused.json()["detail"]
    assert places(server)["lab"]
    seen = server.get("/project")
    assert "h2" in seen["effects"][0]
    assert server.ask("POST", "/project", json={"digest": seen["digest"]}).json() == {"is_trusted": True}
    assert server.get("/project")["is_trusted"]
    assert places(server)["lab"] == []


def test_no_project_file_and_one_that_others_can_write_are_told_apart(server, project):
    project.chmod(0o666)
    asked = server.get("/project")
    assert (asked["path"], asked["digest"]) == ("", "")
    assert "can be written by everybody" in asked["fault"]
    project.rename(project.with_suffix(".away"))
    assert server.get("/project")["fault"] == "There is no project file."
    project.with_suffix(".away").rename(project)
