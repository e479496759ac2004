"""Kubeconfigs as cloud providers write them: plugins that work, fail, are missing; files with tokens; typos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.backends.kubernetes.access import credentials
from jupyter_autotrain.errors import BackendError

pytest.importorskip("kubernetes")
SERVER = {"server": "https://10.0.0.1:6443"}
CREDENTIAL = {
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "kind": "ExecCredential",
    "status": {"token": "from-plugin"},
}


def written(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cl", "cluster": cluster or SERVER}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "cl", "user": "u"}}],
        "current-context": "c",
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    return str(path)


def plugin(folder: Path, program: str) -> dict[str, Any]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return {"exec": {"apiVersion": CREDENTIAL["apiVersion"], "command": str(path), "interactiveMode": "IfAvailable"}}


def refused(path: str, context: str = "") -> str:
    with pytest.raises(BackendError) as caught:
        credentials.load(path, context)
    return caught.value.found


def test_a_plugin_gives_the_token_whatever_it_says_besides(tmp_path: Path) -> None:
    user = plugin(tmp_path, f"echo 'a new version is there' >&2\necho '{json.dumps(CREDENTIAL)}'")
    assert credentials.load(written(tmp_path, user)).authorization == "Bearer from-plugin"


def test_what_a_plugin_that_fails_says_is_why_there_is_no_access(tmp_path: Path) -> None:
    user = plugin(tmp_path, "echo 'Unable to locate credentials.' >&2\nexit 255")
    assert refused(written(tmp_path, user)).endswith("process returned 255. Unable to locate credentials.")


def test_a_kubeconfig_that_is_not_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(str(tmp_path / "none")) == f"There is no kubeconfig {tmp_path / 'none'}."
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refused("") == "No kubeconfig found."


def test_where_there_is_no_kubeconfig_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials.subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{tmp_path / 'neither'}")
    assert refused("") == "No kubeconfig found."
    assert refused(str(tmp_path / "none")) == f"There is no kubeconfig {tmp_path / 'none'}."


def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": CREDENTIAL["apiVersion"], "command": "no-such-plugin"}}
    assert "'no-such-plugin'" in refused(written(tmp_path, user))


def test_a_token_from_a_file_is_taken_without_the_end_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert credentials.load(written(tmp_path, {"tokenFile": "token"})).authorization == "Bearer from-file"


def test_a_certificate_that_is_none_is_told_as_a_fault_of_the_kubeconfig(tmp_path: Path) -> None:
    broken = {**SERVER, "certificate-authority-data": "Z2FyYmFnZQ=="}
    assert "its certificates cannot be used" in refused(written(tmp_path, {"token": "t"}, broken))


def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refused(written(tmp_path, {"token": "t"}), "other").endswith("it has no context 'other'.")
