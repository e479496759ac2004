"""A running JupyterLab in folders of its own, and the browser to look at it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_autotrain.core.home import Home
from tests.server.jupyter import end_manager, free_port

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 200


def chromium() -> str | None:
    """Where Chromium is: the variable CHROMIUM, else the system's."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), None)


@dataclass(frozen=True)
class Server:
    """A running JupyterLab."""

    url: str
    token: str
    notebooks: Path
    home: Path
    pid: int

    def forget_preferences(self) -> bool:
        """Remove what was set in JupyterLab; gives whether anything of ours was set."""
        settings = self.home.parent / "config" / "lab" / "user-settings"
        is_ours = (settings / "jupyter-autotrain").exists()
        shutil.rmtree(settings, ignore_errors=True)
        return is_ours


@contextmanager
def running_lab(root: Path, *options: str, port: int = 0, base_url: str = "") -> Iterator[Server]:
    """Start a JupyterLab over the folders below `root`, as an earlier one left them; end it and its home's manager.

    Args:
        root: Where notebooks, home and settings are; made where they are not.
        options: More options of the server.
        port: The port; 0 takes a free one.
        base_url: Such as `/user/ada`: what is before each address.
    """
    notebooks = root / "notebooks"
    home = root / "home"
    log = root / "server.log"
    notebooks.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    token = _kept_token(root)
    _write_settings(root / "config" / "labconfig")
    argv = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    argv += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={notebooks}"]
    argv += [f"--ServerApp.base_url={base_url}/", "--LabApp.expose_app_in_browser=True", *options]
    argv += ["--LanguageServerManager.autodetect=False"]  # asking npm and node takes a second
    argv += ["--allow-root"] if os.geteuid() == 0 else []
    with log.open("ab") as out:
        process = subprocess.Popen(argv, env=_environment(root), stdout=out, stderr=out, cwd=notebooks)
    try:
        url = f"http://127.0.0.1:{port}{base_url}"
        wait_for(lambda: _answers(url, token, process, log), START_S, "JupyterLab does not answer")
        yield Server(url, token, notebooks, home, process.pid)
    finally:
        _end(process)
        end_manager(Home(home))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server that is slow to end its kernels: what a test left is of no use any more."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], timeout_s: float, complaint: str) -> None:
    """Wait until the condition holds; fails with the complaint."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, complaint
        time.sleep(0.05)


def _environment(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "IPYTHONDIR": str(root / "ipython"),
        "JUPYTER_AUTOTRAIN_HOME": str(root / "home"),
        "OMP_NUM_THREADS": "1",
    }


def _kept_token(root: Path) -> str:
    """Return the same token for each server over these folders, so that a page outlives its server."""
    path = root / "token"
    if not path.exists():
        path.write_text(secrets.token_hex(16))
    return path.read_text()


def _write_settings(folder: Path) -> None:
    """No news from elsewhere, and a notebook is saved only when a test says so."""
    folder.mkdir(parents=True, exist_ok=True)
    disabled = {"@jupyterlab/apputils-extension:announcements": True}
    (folder / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    defaults = {"@jupyterlab/docmanager-extension:plugin": {"autosave": False}}
    (folder / "default_setting_overrides.json").write_text(json.dumps(defaults))


def _answers(url: str, token: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(f"{url}/api/status?token={token}", timeout=20) as answer:
            found: bool = answer.status == 200
            return found
    except OSError:
        return False


_LAYOUT = """async () => {
    const [, name] = location.pathname.match(/workspaces\\/([^/]+)/) ?? [null, 'default'];
    const answer = await fetch(`/lab/api/workspaces/${name}`);
    const { data } = await answer.json();
    return JSON.stringify(data['layout-restorer:data'] ?? {});
}"""


def until_layout_saved(page: Any, name: str, within_s: float = 120.0) -> None:
    """Wait until the layout that a reload restores holds a widget; JupyterLab saves it some time after a change."""
    deadline_s = time.monotonic() + within_s
    while name not in page.evaluate(_LAYOUT):
        assert time.monotonic() < deadline_s, f"the saved layout does not get {name}"
        page.wait_for_timeout(100)
