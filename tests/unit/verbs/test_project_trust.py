"""Planted places: no listing runs what they name, and `backends trust-project` asks for agreement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain.errors import AutotrainError, HeaderError

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: planted
contexts: [{{name: planted, context: {{cluster: planted, user: planted}}}}]
clusters: [{{name: planted, cluster: {{server: "https://127.0.0.1:1"}}}}]
users:
- name: planted
  user:
    exec: {{apiVersion: client.authentication.k8s.io/v1, command: "{command}", interactiveMode: Never}}
"""


@pytest.fixture
def planted(terminal, tmp_path: Path) -> Path:
    """Return a project with three planted places; the file that their program would write."""
    ran = tmp_path / "ran"
    program = tmp_path / "planted.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    (terminal.cwd / "kubeconfig").write_text(KUBECONFIG.format(command=program))
    (terminal.cwd / "ssh_config").write_text(f"Host *\n  ProxyCommand {program}\nMatch exec {program}\n")
    (terminal.cwd / "autotrain.yaml").write_text(
        "backends:\n"
        "  cluster: {type: kubernetes, kubeconfig: ./kubeconfig, image: i}\n"
        "  hosts: {type: ssh, hosts: [h1], config_file: ./ssh_config}\n"
        f"  batch: {{type: slurm, via: h1, config_file: ./ssh_config, python: {sys.executable}}}\n"
    )
    return ran


@pytest.mark.parametrize("words", [("backends",), ("doctor",), ("config",), ("clean",)])
def test_listing_runs_nothing_of_a_planted_file(terminal, planted: Path, words: tuple[str, ...]) -> None:
    terminal.run(*words)
    assert not planted.exists()


def test_places_are_listed_as_not_trusted_yet(terminal, planted: Path) -> None:
    rows = {row["name"]: row for row in terminal.json("backends")}
    for name in ("cluster", "hosts", "batch"):
        assert "is not trusted yet" in rows[name]["reason"]
    assert not planted.exists()


def test_a_check_of_a_planted_place_is_refused(terminal, planted: Path) -> None:
    with pytest.raises(HeaderError, match="trust-project"):
        terminal.run("backends", "check", "hosts")
    assert not planted.exists()


def test_trust_is_given_by_the_digest_that_was_shown(terminal, planted: Path) -> None:
    shown = terminal.run("backends", "trust-project")
    assert "not trusted yet" in shown
    assert '"config_file": "./ssh_config"' in shown
    command = shown.splitlines()[-1].partition("run: %autotrain ")[2].split()
    with pytest.raises(AutotrainError, match="has changed: its digest is"):
        terminal.run("backends", "trust-project", "0" * 32)
    assert "is trusted until it changes" in terminal.run(*command)
    assert "(trusted)" in terminal.run("backends", "trust-project")
    assert terminal.json("config")["backends"][1]["type"] == "kubernetes"
    assert not planted.exists()


def test_a_folder_without_a_project_file_is_told(terminal) -> None:
    with pytest.raises(AutotrainError, match="There is no project file"):
        terminal.run("backends", "trust-project")
