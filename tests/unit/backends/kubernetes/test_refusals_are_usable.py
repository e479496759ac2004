"""Tests that what a refusal of the cluster tells people to do works when they do it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from jupyter_autotrain.backends.kubernetes.access.credentials import said
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile

LACKING = [permissions.Permission("batch", "jobs", "create"), permissions.Permission("", "pods/log", "get")]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("user", ["ada", "system:serviceaccount:team:notebook"])
def test_the_role_that_is_shown_goes_through_kubectl(user: str) -> None:
    shown = permissions.refusal(LACKING, "runs", user).action
    command = ["kubectl", "label", "--local", "-f", "-", "piped=yes", "-o", "name"]
    done = subprocess.run(command, input=shown, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        f"role.rbac.authorization.k8s.io/{permissions.ROLE}",
        f"rolebinding.rbac.authorization.k8s.io/{permissions.ROLE}",
    ], done.stderr


def test_a_server_that_is_away_is_told_without_objects_of_the_program() -> None:
    key = ConnectionKey("c1", 6443, True, ssl.create_default_context(), None, None, None)
    error = aiohttp.ClientConnectorError(key, ConnectionRefusedError(111, "Connection refused"))
    assert "SSLContext" in str(error)
    assert said(error) == "Connection refused"


def test_a_place_that_needs_a_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)  # as where it is not installed
    context = BackendContext(Home(tmp_path))
    probe = KubernetesBackend(Profile("kubernetes", "kubernetes"), context).probe()
    assert not probe.usable
    assert "'aiohttp', which is not installed here." in probe.reason
    assert probe.reason.endswith("pip install 'jupyter-autotrain[kubernetes]'")
