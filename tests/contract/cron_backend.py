"""A backend in one file: trials wait in a folder that a cron job empties.

`submit` puts an entry into the folder; `run_waiting`, which cron calls each minute, starts the supervisor of each
trial that waits there; all else is read from the trial directory, as by every backend whose files lie here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.service import cancelling, starting
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.backends.local import trial_directory
from jupyter_autotrain.core.backend import BackendContext, CancelReceipt, JobRef, JobStatus, Probe, Profile, Submission
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Text

_WAITS = "waits for the next run of the cron job"


class CronOptions(Section):
    """Options of the backend."""

    folder: Text = Field(description="The folder that the cron job empties.", examples=["/var/spool/trials"])


class CronBackend(trial_directory.TrialDirectoryBackend):
    """Puts trials into a folder.

    Args:
        profile: Its name and options.
        context: The home, in whose trial directories they run.
    """

    capabilities = Capabilities(
        multi_worker=True, limits_memory=True, limits_cpu=True, secrets=True, shares_home=True, queues=True
    )

    def __init__(self, profile: Profile, context: BackendContext) -> None:
        self.name = profile.name
        self._profile = profile
        self._context = context
        self._folder = Path(str(profile.options["folder"]))

    @staticmethod
    def options_model() -> type[CronOptions]:
        """Return the model of the options."""
        return CronOptions

    def probe(self) -> Probe:
        """Report whether the folder is there."""
        if self._folder.is_dir():
            return Probe(True, f"A cron job starts what is in {self._folder}.")
        return Probe(False, f"There is no folder {self._folder}.")

    def discover(self) -> Inventory:
        """Return this machine, of which nothing is known but its name."""
        return Inventory((Node(os.uname().nodename),), limits="limits are kept by each supervisor")

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return the command that the cron job runs, the trial's variables, and `trial.json`."""
        content = trial_directory.trial_file_content(trial, placement, self._profile, self._context)
        return Submission(
            argv=(sys.executable, *system.INTERPRETER_FLAGS, *program("supervisor"), content["directory"]),
            env=environment.complete(content, dict.fromkeys(trial.secrets, "(secret, given at submit)")),
            files={wire.TRIAL_FILE: json.dumps(content, indent=1, sort_keys=True)},
        )

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Make the trial directory, and put the trial into the folder unless it is there or has begun."""
        directory = self._context.directory(trial)
        if not self._entry(trial.job_id).exists() and not starting.has_begun(directory):
            trial_directory.check_data(trial, self._context)
            plan = self.render(trial, placement)
            for name in wire.FOLDERS:
                files.make_directories(directory / name)
            wire.write_atomically(str(directory / wire.TRIAL_FILE), plan.files[wire.TRIAL_FILE].encode())
            entry = {"argv": plan.argv, "secrets": dict(secrets), "directory": str(directory)}
            wire.write_atomically(str(self._entry(trial.job_id)), json.dumps(entry).encode())
        return JobRef(self.name, trial.job_id, {"directory": str(directory)})

    def _entry(self, job_id: str) -> Path:
        return self._folder / job_id

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the states; a trial in the folder waits."""
        return [self._status(ref) for ref in refs]

    def _status(self, ref: JobRef) -> JobStatus:
        is_waiting = self._entry(ref.job_id).exists()  # before the look at the directory: it may begin meanwhile
        status = super()._status(ref)
        has_begun = status.detail or status.doubt
        return status if has_begun or not is_waiting else JobStatus(ref, TrialState.PREPARING, _WAITS)

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the trial; one that waits begins now, finds the request and ends before its cell."""
        directory = trial_directory.directory(ref)
        if self._entry(ref.job_id).exists():
            request = json.dumps({"grace_s": grace_s, "reason": "Cancelled on request."}).encode()
            self.put(ref, wire.CANCEL_FILE, request)
            start(self._entry(ref.job_id))
        return cancelling.cancel(directory, grace_s)

    def close(self) -> None:
        """Do nothing, because nothing is held."""


def start(entry: Path) -> None:
    """Start the supervisor of a trial that waits; started twice, it begins once."""
    try:
        task = json.loads(entry.read_text(encoding="utf-8"))
    except FileNotFoundError:  # another one was faster
        return
    starting.start(task["argv"], {**os.environ, **task["secrets"]}, Path(task["directory"]))
    entry.unlink(missing_ok=True)


def run_waiting(folder: Path) -> None:
    """Start all trials that wait: what the cron job does."""
    for entry in sorted(folder.iterdir()):
        if not entry.name.endswith(wire.DRAFT):
            start(entry)


if __name__ == "__main__":
    run_waiting(Path(sys.argv[1]))
