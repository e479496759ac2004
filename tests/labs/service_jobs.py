"""The machine behind the doubles of services: their jobs are processes here, each in a folder, with one log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Job:
    """A job: a process and what it prints.

    Attributes:
        folder: Where it runs.
        process: The process; None before it begins.
        is_stopped: Whether it was asked to end.
    """

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False

    @property
    def state(self) -> str:
        """`WAITING`, `RUNNING`, `STOPPED`, `SUCCEEDED` or `FAILED`."""
        if self.process is None:
            return "STOPPED" if self.is_stopped else "WAITING"
        code = self.process.poll()
        if code is None:
            return "RUNNING"
        if self.is_stopped:
            return "STOPPED"
        return "SUCCEEDED" if code == 0 else "FAILED"

    @property
    def log(self) -> str:
        """All that it has printed."""
        try:
            return (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


class JobRunner:
    """Runs jobs; all end when it is closed.

    Args:
        folder: Where they run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self.jobs: dict[str, Job] = {}
        self.started: list[str] = []

    def start(self, name: str, command: str, environ: Mapping[str, str], files: Mapping[str, bytes] = {}) -> bool:
        """Start a shell command under a name; return False where there is a job of that name."""
        with self._lock:
            if name in self.jobs:
                return False
            job = self.jobs[name] = Job(self._folder / name)
        job.folder.mkdir(parents=True)
        for path, content in files.items():
            (job.folder / path).write_bytes(content)
        self.started.append(name)
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder)}
        with (job.folder / "log").open("wb") as log:
            job.process = subprocess.Popen(
                ["sh", "-c", command], cwd=job.folder, env={**own, **environ}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        return True

    def stop(self, name: str) -> None:
        """Tell a job to end."""
        job = self.jobs[name]
        job.is_stopped = True
        if job.process is not None and job.process.poll() is None:
            os.killpg(job.process.pid, signal.SIGTERM)

    def lose(self, name: str) -> None:
        """Have a job be gone, as with its node."""
        job = self.jobs.pop(name)
        if job.process is not None:
            job.process.kill()
            job.process.wait()

    def close(self) -> None:
        """End all jobs, and remove their folders."""
        for job in self.jobs.values():
            if job.process is not None:
                job.process.kill()
                job.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
