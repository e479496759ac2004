"""The contract of a training service: eleven methods and `close`, plain, synchronous, thread-safe, stateless.

All state travels in the arguments, so that a restarted manager continues with a fresh instance.
A new backend is one file with a `BackendType`, one entry-point line in the group `jupyter_autotrain.backends`, and one
subclass of `jupyter_autotrain.testing.BackendContract`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jupyter_autotrain.agent.json import JsonObject, from_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt as CancelReceipt  # noqa: PLC0414 - of the contract
from jupyter_autotrain.agent.trial.cancel_receipt import receipt_of as receipt_of  # noqa: PLC0414 - of the contract
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.data import DataManifest
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class BackendContext:
    """The part of the manager's machine that a backend may use: the home, with bundles and trial directories."""

    home: Home

    def bundle(self, trial: TrialSpec) -> Path:
        """Return the path of the trial's bundle in the home."""
        return self.home.bundle(trial.experiment_id)

    def directory(self, trial: TrialSpec, attempt: int | None = None) -> Path:
        """Return the home's directory of a trial's attempt, by default its own; of attempt 0 that of its source."""
        source = trial.source
        if attempt == 0 and source is not None:
            return self.home.trial(source.experiment_id, source.number, source.attempt)
        return self.home.trial(trial.experiment_id, trial.number, attempt or trial.attempt)

    def data(self, trial: TrialSpec, name: str) -> DataManifest | None:
        """Return the content of a `data:` entry of kind COPY at its submission; None before the submission.

        Raises:
            BackendError: What is noted about it is damaged.
        """
        path = self.home.data_manifest(trial.experiment_id, name)
        try:
            return from_json(DataManifest, json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise BackendError(f"{path} is damaged: {error}.", "", "Submit the cell again.") from error


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer to whether the backend can be used from here; `reason` is one sentence either way.

    `is_lasting` when it is of no use to ask again later; a backend that only does not answer now may come back.
    """

    usable: bool
    reason: str
    is_lasting: bool = True


@dataclass(frozen=True, slots=True)
class JobRef:
    """A backend's own name for a trial: enough for a fresh backend instance to find it again."""

    backend: str
    job_id: str
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job, as its backend reports it.

    `state` is PREPARING, RUNNING or a final state. `reason` is in plain words; before the end it is what the job waits
    for, as the rest of a sentence that begins with the trial. `detail` is the status file's content (exit code, pids,
    peak memory ...), when there is one. With a `doubt` the state is not known at the moment, for that reason: then
    `state` means nothing, and the job is polled again later. An unknown state is never LOST. `unreachable` when the
    doubt is that the job's node does not answer: the job goes on there. Of a job on several nodes, `unreachable_nodes`
    are those that do not answer; none are named where that is all of them.
    """

    ref: JobRef
    state: TrialState
    reason: str = ""
    detail: JsonObject = field(default_factory=dict)
    doubt: str = ""
    unreachable: bool = False
    unreachable_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """A request for bytes of a job's stream (`stdout`, `stderr`, `metrics` or `usage`) from `offset` on."""

    ref: JobRef
    stream: str
    offset: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a stream, from `offset`; empty when there is nothing new; with a `fault` why it could not be read.

    `is_lasting` when reading again is of no use.
    """

    cursor: Cursor
    data: bytes
    fault: str = ""
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """The exact things that a backend would receive: argv, variables (of secrets the names only), files."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """A training service: somewhere a trial can run."""

    name: str  # of its profile
    capabilities: Capabilities
    poll_interval: PollInterval

    def probe(self) -> Probe:
        """Tell whether the backend can be used from here; never raise."""
        ...

    def discover(self) -> Inventory:
        """Return the nodes of the backend, with what each has."""
        ...

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Return exactly the things that `submit` would send, without touching anything.

        It is pure: the same arguments give the same answer.
        """
        ...

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial. The same `trial.job_id` twice gives the same job, started once.

        It goes on from the checkpoints of `trial.resume_attempt`, or of the last attempt before that one that has any
        (`backends.trial_content.from_last_saved`): its own, else those in the home's directory of that attempt,
        which ran on another backend then: all of them, or `resume_attempt` is None.

        Args:
            trial: What to run.
            placement: On which nodes and accelerators.
            secrets: The values of `trial.secrets`.

        Raises:
            SubmitUnknownError: Its node stopped to answer meanwhile: whether the trial was started is not known.
            BackendUnavailableError: It does not answer; this call has certainly not started the trial.
            BackendError: When the backend refuses.
        """
        ...

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """Return the states of all jobs in one round trip, in the order of `refs`."""
        ...

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Read all streams in one round trip, at most 4 MiB per stream and call."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory, atomically."""
        ...

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder of the trial directory, or all of it (`.`), to `target` on this machine.

        A folder of `wire.FOLDERS` that is not there is an empty one.

        Raises:
            BackendError: There is no such file or folder, or it cannot be read.
        """
        ...

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """Return the bytes of all regular files below a folder of the trial directory, by path in the folder.

        A folder of `wire.FOLDERS` that is not there is an empty one.

        Raises:
            BackendError: There is no such folder, or it cannot be read.
        """
        ...

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Return those of these paths that are not there, as (node, path); a path may begin with `~`.

        A node that cannot be asked now has none: its trials find out themselves.
        """
        ...

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the job's whole process tree, and return when it is gone; a second call does no harm.

        Of a job on several nodes the receipt names those that do not answer: there it goes on, and is cancelled again.

        Raises:
            BackendUnavailableError: No node of the job answers.
        """
        ...

    def close(self) -> None:
        """Close connections; jobs continue."""
        ...


class PushingBackend(Backend, Protocol):
    """A backend that tells when there is something new (`Capabilities.pushes`)."""

    def subscribe(self, on_news: Callable[[Collection[str]], None], on_progress: Callable[[str, str], None]) -> None:
        """Let news call these functions, in any thread.

        Args:
            on_news: Takes the job ids of jobs that should be polled and read now.
            on_progress: Takes a job id, and what its submit is doing: the rest of a sentence that begins with the
                trial; "" when that is over.
        """
        ...


class BackendType(Protocol):
    """The class that an entry point of the group `jupyter_autotrain.backends` leads to, and that makes its backends."""

    def __call__(self, profile: Profile, context: BackendContext) -> Backend:
        """Make the backend of a profile; its options have been checked.

        Raises:
            BackendError: It cannot be made.
        """
        ...

    def options_model(self) -> type[BaseModel]:
        """Return the model of its options: of `Profile.options` and of its section of the header.

        Where all have defaults, its name alone is a backend too.

        A class variable `header_keys` of the model names the options that the section has; without it, all. One called
        `names_of_secrets` names the keys whose text is the name of a secret that is kept elsewhere.
        """
        ...
