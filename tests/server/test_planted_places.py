"""A planted project file beside the notebooks: opening Places runs nothing of it."""

from __future__ import annotations


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
