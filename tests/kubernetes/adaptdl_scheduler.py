"""AdaptDL's own controller, allocator and supervisor, from their released package, against a cluster of the double.

All three run in the network of the pods, where nothing of this machine is reached but the API server, by a forwarder.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.labs.kubernetes.adaptdl.pods import SUPERVISOR_URL
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import DEPLOYMENTS

PYTHON = Path(sys.prefix) / "adaptdl" / "bin" / "python"
PARTS = ("adaptdl_sched", "adaptdl_sched.allocator", "adaptdl_sched.supervisor")
# The allocator reconsiders all jobs once a minute; here every ROUND_S seconds. The supervisor makes its clients before
# its loop, which newer releases of aiohttp need to be the same.
RUN = """
import asyncio, os, runpy, sys
import kubernetes_asyncio as kubernetes
from aiohttp import web
def load():
    given = kubernetes.client.Configuration()
    given.host = os.environ["API_URL"]
    given.ssl_ca_cert = os.environ["API_CA"]
    given.api_key = {"authorization": "Bearer " + os.environ["API_TOKEN"]}
    kubernetes.client.Configuration.set_default(given)
kubernetes.config.load_incluster_config = load
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
run_app = web.run_app
web.run_app = lambda app, **options: run_app(app, loop=loop, **options)
sleep = asyncio.sleep
round_s = float(os.environ["ROUND_S"])
asyncio.sleep = lambda seconds, *more: sleep(min(seconds, round_s), *more)
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""


def missing() -> str:
    """Why it cannot be had here; "" where it can."""
    return "" if PYTHON.exists() else f"AdaptDL's scheduler is not at {PYTHON}: `.ci/adaptdl` installs it"


@contextlib.contextmanager
def running(lab: KubernetesLab, folder: Path, round_s: float = 2.0) -> Iterator[Path]:
    """Run it; gives the folder of its logs.

    Args:
        lab: The cluster.
        folder: Where it logs.
        round_s: How often it reconsiders all jobs; 60 as it is released.
    """
    metadata = {"name": "adaptdl-sched", "labels": {"app": "adaptdl-sched"}}
    template = {
        "metadata": {"labels": metadata["labels"]},
        "spec": {"containers": [{"name": "sched", "image": "sched"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": metadata["labels"]}, "template": template}
    lab.store.create(DEPLOYMENTS, "default", {"metadata": metadata, "spec": spec})
    with lab.inside():
        listener = socket.create_server(("127.0.0.1", 0))
    forwarder = threading.Thread(target=_forward, args=(listener, lab.api.port), daemon=True)
    forwarder.start()
    environ = {**_environment(lab, listener.getsockname()[1]), "ROUND_S": str(round_s)}
    parts = []
    with lab.inside():
        for name in PARTS:
            with (folder / f"{name}.log").open("wb") as log:
                command = [str(PYTHON), "-W", "ignore", "-c", RUN, name]
                parts.append(subprocess.Popen(command, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
    try:
        yield folder
    finally:
        for part in parts:
            part.kill()
            part.wait()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        forwarder.join(timeout=10)


def _environment(lab: KubernetesLab, port: int) -> dict[str, str]:
    config: Any = YAML(typ="safe").load(lab.kubeconfig.read_text())
    authority = config["clusters"][0]["cluster"]["certificate-authority"]
    own = {
        "API_URL": f"https://127.0.0.1:{port}", "API_CA": str(authority),
        "API_TOKEN": config["users"][0]["user"]["token"], "ADAPTDL_SUPERVISOR_URL": SUPERVISOR_URL,
        "ADAPTDL_SCHED_VERSION": "0.2.11",
        "ADAPTDL_SCHED_DEPLOYMENT": "adaptdl-sched", "ADAPTDL_IMAGE": "adaptdl",
    }  # fmt: skip
    return {"PATH": os.environ["PATH"], **own}


def _forward(listener: socket.socket, port: int) -> None:
    """Pass connections on to the API server, whose network is another."""
    with contextlib.suppress(OSError):
        while True:
            inside, _ = listener.accept()
            outside = socket.create_connection(("127.0.0.1", port))
            for source, target in ((inside, outside), (outside, inside)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
