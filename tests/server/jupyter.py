"""A real Jupyter server on the loopback interface, with no kernel, over homes that tests fill by hand."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import requests

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.store import Ingest, Store

BASE_URL = "/hub/user/ada/"
_OTHERS = (
    "jupyterlab",
    "jupyter_lsp",
    "notebook_shim",
    "jupyter_server_terminals",
)  # slow to start


@dataclass
class JupyterServer:
    """A running server, its API, and the home it shows."""

    url: str
    token: str
    root: Path
    home: Home
    process: subprocess.Popen[bytes]

    @property
    def api(self) -> str:
        """Where the operations are."""
        return f"{self.url}jupyter-autotrain/api"

    @property
    def environ(self) -> dict[str, str]:
        """Return what leads to its user's files."""
        return {"JUPYTER_CONFIG_DIR": str(self.root.parent / "config")}

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """Ask with the server's token."""
        headers = {"Authorization": f"token {self.token}", **options.pop("headers", {})}
        return requests.request(method, f"{self.api}{path}", headers=headers, timeout=120, **options)

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of an operation that must succeed."""
        answer = self.ask("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def end_manager(self) -> None:
        """Kill the manager of the home, where one lives."""
        end_manager(self.home)


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[JupyterServer]:
    """Start a server, enabled by nothing but the installation; end it, and a manager that it has started."""
    root = folder / "notebooks"
    root.mkdir(parents=True)
    port = free_port()
    token = secrets.token_hex(16)
    environ = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_AUTOTRAIN_HOME": str(folder / "home"),
    }
    argv = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    argv += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}"]
    argv += [f"--ServerApp.jpserver_extensions={dict.fromkeys(_OTHERS, False)}"]
    argv += [f"--ServerApp.base_url={BASE_URL}", *options, *(["--allow-root"] if os.geteuid() == 0 else [])]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(argv, env=environ, stdout=out, stderr=out, cwd=root)
    server = JupyterServer(f"http://127.0.0.1:{port}{BASE_URL}", token, root, Home(folder / "home"), process)
    try:
        _wait_until_up(server, log)
        yield server
    finally:
        process.terminate()
        process.wait(120)
        server.end_manager()
    assert "Traceback" not in log.read_text(), log.read_text()


def _wait_until_up(server: JupyterServer, log: Path) -> None:
    deadline_s = time.monotonic() + 200  # a loaded machine takes long
    while True:
        assert server.process.poll() is None, log.read_text()
        assert time.monotonic() < deadline_s, log.read_text()
        with suppress(requests.ConnectionError, requests.Timeout):
            if requests.get(f"{server.url}api/status?token={server.token}", timeout=120).status_code == 200:
                return
        time.sleep(0.05)


def free_port() -> int:
    """Return a port that nobody listens on, outside of the range from which the system takes one for a connection."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def end_manager(home: Home) -> None:
    """Kill the manager of a home, where one lives."""
    status = manager.status(home)
    if not status.alive:
        return
    with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
        process = psutil.Process(status.pid)
        process.kill()
        process.wait(240)


def play_manager(home: Home) -> None:
    """Have readers believe that another machine serves the home: then none of them starts a manager; an action does."""
    make_private(home)
    with home.manager_lock.open("w") as lock:
        ManagerIdentity(ProcessIdentity.of(os.getpid()), "another machine").write(lock.fileno())


class Filler:
    """Puts experiments into a home, as submits and a manager would."""

    def __init__(self, server: JupyterServer) -> None:
        self.server = server
        self.store = Store.open(server.home)
        if not manager.status(server.home).alive:
            play_manager(server.home)

    def experiment(self, experiment_id: str, name: str = "digits", trials: int = 4, notebook: str = "a.ipynb") -> str:
        """Add an experiment with its captured code."""
        origin = Origin(str(self.server.root / notebook))
        objective = Objective("val_acc")
        spec = ExperimentSpec(name, Bundle(), objective=objective, trials=trials, origin=origin, header="trials: 4")
        bundle = self.server.home.bundle(experiment_id)
        bundle.mkdir(parents=True)
        (bundle / "main.py").write_text("trial.report(val_acc=0.5)\n")
        self.store.add_experiment(experiment_id, spec, time.time())
        return experiment_id

    def begin(self, experiment_id: str, number: int, **params: Any) -> None:
        """Add a running trial."""
        self.store.add_trial(experiment_id, number, params, time.time())
        self.store.change_state(experiment_id, number, TrialState.PREPARING, time.time())
        self.store.change_state(experiment_id, number, TrialState.RUNNING, time.time())

    def report(self, experiment_id: str, number: int, values: list[float], metric: str = "val_acc") -> None:
        """Report values, at the steps that follow."""
        cursor = self.store.cursor(experiment_id, number, 1, "metrics")
        points = [(metric, cursor + step, time.time(), value) for step, value in enumerate(values)]
        after = cursor + len(values)
        objective = Objective("val_acc")
        self.store.ingest([Ingest(experiment_id, number, 1, "metrics", after, points=points, objective=objective)])

    def end(self, experiment_id: str, number: int, state: str = "SUCCEEDED", reason: str = "") -> None:
        """End a trial."""
        self.store.change_state(experiment_id, number, TrialState(state), time.time(), reason=reason)

    def done(self, experiment_id: str, **options: Any) -> str:
        """Add an experiment of one trial that has ended."""
        self.experiment(experiment_id, trials=1, **options)
        self.begin(experiment_id, 1, lr=0.1)
        self.report(experiment_id, 1, [0.5, 0.75])
        self.end(experiment_id, 1)
        self.store.close_experiment(experiment_id, time.time())
        return experiment_id

    def file(self, experiment_id: str, number: int, name: str, data: bytes) -> Path:
        """Write a file of a trial."""
        path = self.server.home.trial(experiment_id, number, 1) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


def problem_of(answer: requests.Response) -> Any:
    """Return the problem that a refused request is answered with: three clauses."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    found = json.loads(answer.text)
    assert found["status"] == answer.status_code
    assert found["detail"]
    assert found["expected"]
    return found
