"""The machine behind the doubles of services: their jobs are processes here, each in a folder, each with a log."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Job:
    """A job: a process for each of its workers, and what they print.

    Attributes:
        folder: Where it runs.
        places: How the names begin of what it has in its containers, which here is this machine's `/tmp`.
        workers: The processes; none before it begins.
        is_stopped: Whether it was asked to end.
    """

    folder: Path
    places: frozenset[str] = frozenset()
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    is_stopped: bool = False

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The process of its first worker; None before it begins."""
        return self.workers[0] if self.workers else None

    @property
    def state(self) -> str:
        """`WAITING`, `RUNNING`, `STOPPED`, `SUCCEEDED` or `FAILED`."""
        if not self.workers:
            return "STOPPED" if self.is_stopped else "WAITING"
        codes = [worker.poll() for worker in self.workers]
        if None in codes:
            if any(codes):  # one has failed: services end the others then
                self.terminate()
            return "RUNNING"
        if self.is_stopped:
            return "STOPPED"
        return "FAILED" if any(codes) else "SUCCEEDED"

    def terminate(self) -> None:
        """Tell all workers to end."""
        for worker in self.workers:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill all workers with their processes, and remove what they have in their containers."""
        for worker in self.workers:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        for place in self.places:
            for folder in Path("/tmp").glob(f"{place}*"):
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def log(self) -> str:
        """All that its first worker has printed."""
        return self.log_of(0)

    def log_of(self, worker: int) -> str:
        """Return all that a worker has printed."""
        try:
            return self.log_file(worker).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def log_file(self, worker: int) -> Path:
        """Return where a worker's log lies."""
        return self.folder / (f"log-{worker}" if worker else "log")


class JobRunner:
    """Runs jobs; all end when it is closed.

    Args:
        folder: Where they run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self.jobs: dict[str, Job] = {}
        self.started: list[str] = []

    def start(
        self, name: str, command: str, environ: Mapping[str, str], files: Mapping[str, bytes] = {},
        workers: Sequence[Mapping[str, str]] = ({},),
    ) -> bool:  # fmt: skip
        """Start a shell command under a name, once for each worker; return False where there is a job of that name.

        Args:
            name: Of the job.
            command: The command.
            environ: The variables of all workers.
            files: By their names in the folder where it runs.
            workers: The variables of each.
        """
        with self._lock:
            if name in self.jobs:
                return False
            places = frozenset(re.findall(r"/tmp/(autotrain-[\w-]+)", command))
            job = self.jobs[name] = Job(self.folder / name, places)
        job.folder.mkdir(parents=True)
        for path, content in files.items():
            (job.folder / path).write_bytes(content)
        self.started.append(name)
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), **environ}
        for number, variables in enumerate(workers):
            with job.log_file(number).open("wb") as log:
                worker = subprocess.Popen(
                    ["sh", "-c", command], cwd=job.folder, env={**own, **variables}, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            job.workers.append(worker)
        return True

    def stop(self, name: str) -> None:
        """Tell a job to end."""
        job = self.jobs[name]
        job.is_stopped = True
        job.terminate()

    def lose(self, name: str) -> None:
        """Have a job be gone, as with its node."""
        self.jobs.pop(name).kill()

    def close(self) -> None:
        """End all jobs, and remove their folders."""
        for job in self.jobs.values():
            job.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def new_address() -> str:
    """Return an address of this machine that nobody else has, as another host has its own."""
    return "127.{}.{}.{}".format(*(1 + secrets.randbelow(254) for _ in range(3)))
