"""The local backend: trials as processes of this machine, which outlive the process that started them."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.environments import interpreters
from jupyter_autotrain.agent.environments.python_environment import (
    INSPECTED_KINDS,
    EnvironmentKind,
    InterpreterReport,
    PythonEnvironment,
)
from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.service import cancelling, machine, starting, warm_starts
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.core.backend import BackendContext, CancelReceipt, JobRef, Probe, Submission
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec

if TYPE_CHECKING:
    from pydantic import BaseModel


class LocalBackend(trial_directory.TrialDirectoryBackend):
    """A backend that runs each trial as a fresh process in its own session, beside a supervisor of its own.

    Args:
        profile: Its name and options.
        context: The home; trials run in its trial directories.
    """

    capabilities = Capabilities(
        multi_worker=True, gpu_slots=True, limits_memory=True, limits_cpu=True, secrets=True, shares_home=True
    )

    def __init__(self, profile: Profile, context: BackendContext) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        self._warm_starts = warm_starts.WarmStarts(context.home.root / warm_starts.FOLDER)

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return the model of the options: how many trials share a GPU, and which GPUs may be used."""
        from jupyter_autotrain.backends.local.options import LocalOptions  # noqa: PLC0415 - the manager has no use for it

        return LocalOptions

    def probe(self) -> Probe:
        """Report that it can be used on every Unix; `doctor` says what is weaker where it is not Linux."""
        kinds = Counter(str(name) for _, _, name, *_ in machine.gpus())
        gpus = ", ".join(sorted(f"{count} x {kind}" for kind, count in kinds.items()))
        gpus = gpus or "no GPUs seen (`nvidia-smi` lists none)"
        return Probe(True, f"This machine: {len(system.usable_cpus())} CPUs; {gpus}.")

    def discover(self) -> Inventory:
        """Return the resources of this machine, as far as this process may use them."""
        found = cast("JsonObject", machine.describe())
        return Inventory((agent_answers.node(platform.node(), found),), limits=str(found["limits"]))

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the supervisor's command, the variables set for the trial, and `trial.json`."""
        content = trial_directory.trial_file_content(trial, placement, self._profile, self._context)
        env = environment.complete(content, dict.fromkeys(trial.secrets, "(secret, given at submit)"))
        return Submission(
            argv=_command(self._context.directory(trial)),
            env=env,
            files={wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True)},
        )

    def inspect_python(self, environment: PythonEnvironment, distributions: Sequence[str]) -> list[InterpreterReport]:
        """Return a report on another interpreter of this machine.

        Nothing is asked of the notebook's own.
        """
        if environment.kind not in INSPECTED_KINDS - {EnvironmentKind.PLACE}:
            return []
        asked = cast("JsonObject", to_json(environment))
        found = cast("JsonObject", interpreters.inspect(sys.executable, asked, distributions, os.environ))
        return [from_json(InterpreterReport, {**found, "node": ""})]

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial's supervisor; the `lock` file in the trial directory lets only one ever begin."""
        directory = self._context.directory(trial)
        ref = JobRef(self.name, trial.job_id, {"directory": str(directory)})
        starting.begin_once(trial.job_id, directory, lambda: self._begin(trial, placement, secrets))
        return ref

    def _begin(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> None:
        trial_directory.check_data(trial, self._context)
        content = trial_directory.trial_file_content(trial, placement, self._profile, self._context)
        directory = self._context.directory(trial)
        if self._warm_starts.start(content, secrets, partial(_write_trial, directory, json.dumps(content).encode())):
            return
        own = {name: value for name, value in os.environ.items() if name not in trial.secrets}
        starting.start(_command(directory), own | dict(secrets), directory)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """Have the supervisor end the tree; where it is gone itself, end the tree from here."""
        return cancelling.cancel(trial_directory.directory(ref), grace_s)

    def close(self) -> None:
        """Do nothing, because nothing is held."""


def _command(directory: Path) -> tuple[str, ...]:
    """Return the command of a supervisor."""
    return (sys.executable, *system.INTERPRETER_FLAGS, *program("supervisor"), str(directory))


def _write_trial(directory: Path, text: bytes) -> None:
    for name in wire.FOLDERS:
        files.make_directories(directory / name)
    wire.write_atomically(str(directory / wire.TRIAL_FILE), text, sync=False)
