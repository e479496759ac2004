"""The local backend: trials as processes of this machine, which outlive whoever started them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jupyter_autotrain.backends import folder, gpus, settle
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import CancelReceipt, Capabilities, JobRef, Probe, Submission
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.worker import environment, start_supervisor
from jupyter_autotrain.worker.limits import describe

_START_S = 20.0


class LocalBackend(folder.TrialFolders):
    """Runs each trial as a fresh process in its own session, beside a supervisor of its own.

    Args:
        home: The home folder.
        nvml: Where GPUs are asked for; NVIDIA's library when not given.
    """

    name = "local"
    capabilities = Capabilities(gpu_slots=True, limits_memory=True, limits_cpu=True, secrets=True, shares_home=True)

    def __init__(self, home: Home, nvml: gpus.Nvml | None = None) -> None:
        self._home, self._nvml = home, nvml

    def probe(self) -> Probe:
        """Usable on Linux, where `/proc` tells of processes."""
        if not Path("/proc/self/stat").exists():
            return Probe(False, f"Local trials need Linux with /proc; this is {sys.platform}.")
        return Probe(True, f"This machine: {len(os.sched_getaffinity(0))} CPUs; {gpus.sentence(self._nvml)}.")

    def discover(self) -> Inventory:
        """What this machine has, as far as this process may use it."""
        return Inventory(
            cpus=float(len(os.sched_getaffinity(0))),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            gpus=gpus.find(self._nvml),
            limits=describe(),
        )

    def render(self, trial: TrialSpec) -> Submission:
        """The supervisor's command, the variables set for the trial, and `trial.json`."""
        content = folder.content(trial)
        env = environment.complete(content, dict.fromkeys(trial.secrets, "(secret, given at submit)"))
        return Submission(
            argv=(sys.executable, "-I", "-S", str(start_supervisor.__file__), trial.directory),
            env=env,
            files={wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True)},
        )

    def submit(self, trial: TrialSpec, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial's supervisor; the `claim` file in the trial directory lets only one ever begin."""
        ref = JobRef(self.name, trial.job_id, {"directory": trial.directory})
        directory = Path(trial.directory)
        if (directory / wire.STATUS_FILE).exists():
            return ref
        plan = self.render(trial)
        try:
            for name in wire.FOLDERS:
                folder.make(directory / name)
            wire.write_atomically(str(directory / wire.TRIAL_FILE), plan.files[wire.TRIAL_FILE].encode(), sync=False)
            own = {name: value for name, value in os.environ.items() if name not in trial.secrets}
            self._start(plan.argv, own | dict(secrets))
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            raise BackendError(
                f"Trial {trial.job_id} cannot be started: {said.strip().splitlines()[-1]}.",
                f"A folder that can be written: {directory}.",
                "Look at its disk space and permissions; nothing was lost, `%autotrain retry` goes on.",
            ) from error
        self._await_status(directory, trial.job_id)
        return ref

    def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True, check=True, timeout=_START_S, text=True,
        )  # fmt: skip

    def _await_status(self, directory: Path, job_id: str) -> None:
        # Nearly always there at once: the starter returns when it is. A rival that claimed first may need a moment.
        deadline = time.monotonic() + _START_S
        while not (directory / wire.STATUS_FILE).exists():
            if time.monotonic() > deadline:
                raise BackendError(
                    f"The supervisor of trial {job_id} did not start.",
                    f"A status file in {directory}.",
                    f"Try it by hand: {sys.executable} -I -S {start_supervisor.__file__} {directory}",
                )
            time.sleep(0.005)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """Ask the supervisor to end the tree; when it is gone itself, end the tree from here."""
        return settle.cancel(folder.directory(ref), grace_s)

    def close(self) -> None:
        """Nothing is held."""
