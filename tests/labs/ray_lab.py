"""A real Ray head on this machine, in namespaces of its own: all of it ends with their first process.

Ray comes from an environment beside `.venv` (`.ci/ray`), as its pins are not ours.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.labs import namespaces

RAY = Path(sys.prefix) / "ray" / "bin" / "ray"
_START_S = 300.0
_ADDRESS = "http://127.0.0.1:8265"
_HEAD = "127.0.0.1:6379"
_BEGIN = """
hostname ray
ip link set lo up
echo ready
exec cat >/dev/null
"""


def missing() -> str:
    """Why there can be no Ray on this machine; "" when there can be."""
    if not RAY.exists():
        return "a Ray head needs Ray: sh .ci/ray installs it beside .venv"
    if os.geteuid() != 0:
        return "a Ray head in namespaces needs root"
    command = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "true")
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces are not allowed here: {tried.stderr.strip()}"


class RayLab:
    """A Ray cluster.

    Args:
        folder: An empty folder with a short path: sockets lie in it.
        cpus: How many CPUs Ray counts on each node.
        nodes: How many nodes it has.

    Attributes:
        address: Where its dashboard is, in its network.
    """

    def __init__(self, folder: Path, cpus: int = 4, nodes: int = 1) -> None:
        self.folder = folder
        self.address = _ADDRESS
        kinds = ("--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
        self._first = namespaces.begin(("unshare", *kinds, "sh", "-c", _BEGIN))
        try:
            self.run(
                str(RAY), "start", "--head", "--disable-usage-stats", f"--num-cpus={cpus}",
                "--object-store-memory=100000000", f"--temp-dir={folder}", "--node-ip-address=127.0.0.1",
                "--dashboard-host=127.0.0.1", "--min-worker-port=20000", "--max-worker-port=20999",
            )  # fmt: skip
            for number in range(2, nodes + 1):
                self.run(
                    str(RAY), "start", f"--address={_HEAD}", "--disable-usage-stats", f"--num-cpus={cpus}",
                    "--object-store-memory=100000000", f"--node-ip-address=127.0.0.{number}",
                    f"--min-worker-port={number}1000", f"--max-worker-port={number}1999",
                    f"--dashboard-agent-listen-port={52365 + number}",
                )  # fmt: skip
            self._wait_until_it_answers()
        except BaseException:
            self.close()
            raise

    @property
    def first_pid(self) -> int:
        """The first process of its host, by its pid on this machine."""
        outer = self._first.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def run(self, *argv: str) -> str:
        """Return what a command prints that runs beside Ray."""
        done = subprocess.run(
            ("nsenter", "--target", str(self.first_pid), "--all", *argv), check=False, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, env={"PATH": namespaces.search_path(), "HOME": str(self.folder)},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{argv[0]} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def is_gone(self, pid: int) -> bool:
        """Return whether no process of the host has this pid any more; one that is not reaped yet is gone."""
        try:
            return self.run("ps", "-o", "stat=", "-p", str(pid)).startswith("Z")
        except RuntimeError:
            return True

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_S
        with self.inside():
            while time.monotonic() < deadline:
                with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(f"{self.address}/api/jobs/"):
                    return
                time.sleep(0.1)
        raise RuntimeError("Ray's dashboard did not come up.")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Put the calling thread, and all threads and processes that it starts, into Ray's network."""
        with namespaces.inside_network(self.first_pid):
            yield

    def close(self) -> None:
        """End Ray and all its jobs."""
        namespaces.end(self._first)
