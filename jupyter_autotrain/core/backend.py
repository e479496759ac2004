"""The contract of a training service: nine methods and `close`, plain, synchronous, thread-safe, stateless.

All state travels in the arguments, so that a manager that was killed goes on with a fresh instance.
A new place is one file with a `BackendType`, one entry-point line in the group `jupyter_autotrain.backends`, and one
subclass of `jupyter_autotrain.testing.BackendContract`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Profile:
    """A place by name: its type (an entry point's name), and options that the type's model has checked."""

    name: str
    type: str
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BackendContext:
    """What a backend may use of the manager's machine: the home, with the bundles and the trial directories."""

    home: Home

    def bundle(self, trial: TrialSpec) -> Path:
        """Where the trial's bundle lies in the home."""
        return self.home.bundle(trial.experiment_id)

    def directory(self, trial: TrialSpec, attempt: int | None = None) -> Path:
        """The home's directory of a trial's attempt, its own when not given."""
        return self.home.trial(trial.experiment_id, trial.number, attempt or trial.attempt)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a place can do. What an experiment asks for and its place cannot do is refused before submit.

    Attributes:
        multi_node: Runs a trial on several nodes (`resources.nodes`).
        multi_worker: Starts several workers of a trial on a node (`resources.workers_per_node`).
        artifacts: Brings files back: `fetch` works, and so does `returns:`.
        survives_manager: Trials go on when the process ends that called `submit`; else `submit` runs them.
        gpu_slots: Gives a trial the accelerators of its placement, and no others (`resources.gpus`).
        limits_memory: Ends a trial that takes more than `resources.memory`.
        limits_cpu: Gives a trial no more than `resources.cpus`.
        secrets: Hands secrets over without keeping them.
        shares_home: Trials run in the home's own trial directories, so their files need not be copied.
        queues: Queues trials by itself: the manager submits all at once and chooses no nodes.
    """

    multi_node: bool = False
    multi_worker: bool = False
    artifacts: bool = True
    survives_manager: bool = True
    gpu_slots: bool = False
    limits_memory: bool = False
    limits_cpu: bool = False
    secrets: bool = False
    shares_home: bool = False
    queues: bool = False


@dataclass(frozen=True, slots=True)
class PollInterval:
    """How often a place wants to be asked about a job: after a share of the job's age, within bounds.

    So a trial of milliseconds is seen at once, and a trial of hours costs next to nothing.

    Attributes:
        least_s, most_s: The bounds.
        age_share: The share of the job's age.
        unknown_most_s: The upper bound while the state of the job, or of the whole place, is not known.
    """

    least_s: float = 0.005
    most_s: float = 0.1
    age_share: float = 0.1
    unknown_most_s: float = 2.0

    def after_s(self, age_s: float, *, known: bool = True) -> float:
        """How long to leave a job alone.

        Args:
            age_s: How long it has been watched; where its state is not known, for how long.
            known: Whether its state is known.
        """
        most_s = self.most_s if known else self.unknown_most_s
        return min(max(age_s * self.age_share, self.least_s), most_s)


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether the place can be used from here; `reason` is one sentence either way."""

    usable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class JobRef:
    """A place's own name for a trial: enough for a fresh backend instance to find it again."""

    backend: str
    job_id: str
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What a place says of a job.

    `state` is PREPARING, RUNNING or a final state. `reason` is in plain words. `detail` is the status file's
    content (exit code, pids, peak memory ...), when there is one. With a `doubt` the place cannot tell just now, for
    that reason: then `state` says nothing, and it is asked again later. Not to know is never LOST.
    """

    ref: JobRef
    state: TrialState
    reason: str = ""
    detail: JsonObject = field(default_factory=dict)
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A request for bytes of a job's stream (`stdout`, `stderr` or `metrics`) from `offset` on."""

    ref: JobRef
    stream: str
    offset: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a stream, from `offset`; empty when there is nothing new.

    With a `fault` it could not be read, for that reason; `is_lasting` when asking again is of no use.
    """

    cursor: Cursor
    data: bytes
    fault: str = ""
    is_lasting: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """Exactly what a place would receive: argv, environment (of secrets the names only), files."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelReceipt:
    """Proof of a cancel: which processes were ended, which needed force, how long it took, what is left."""

    pids_ended: tuple[int, ...] = ()
    pids_killed: tuple[int, ...] = ()
    pids_left: tuple[int, ...] = ()
    elapsed_s: float = 0.0
    note: str = ""


def receipt_of(detail: JsonObject) -> CancelReceipt:
    """The receipt in a status file (see `core.wire`), whatever else lies there; an empty one when there is none."""
    told = detail.get("receipt")
    return CancelReceipt(_pids(told, "ended"), _pids(told, "killed"), _pids(told, "left"))


def _pids(told: JsonValue, kind: str) -> tuple[int, ...]:
    found = told.get(kind) if isinstance(told, Mapping) else None
    return tuple(pid for pid in found if isinstance(pid, int)) if isinstance(found, list) else ()


class Backend(Protocol):
    """A training service: somewhere a trial can run."""

    name: str  # of its profile
    capabilities: Capabilities
    poll_interval: PollInterval

    def probe(self) -> Probe:
        """Say whether the place can be used here; never raises."""
        ...

    def discover(self) -> Inventory:
        """Say what the place has: CPUs, memory, GPUs."""
        ...

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        """Say exactly what `submit` would send. Pure: same arguments, same answer; nothing is touched."""
        ...

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        """Start the trial. The same `trial.job_id` twice gives the same job, started once.

        Args:
            trial: What to run.
            placement: On which nodes and accelerators.
            secrets: The values of `trial.secrets`.

        Raises:
            BackendError: When the place refuses.
        """
        ...

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """One question for all jobs; the answers are in the order of `refs`."""
        ...

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """One round trip for all streams; at most 4 MiB per stream and call."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """Write a file into the trial directory, atomically."""
        ...

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """Copy a file or folder of the trial directory, or all of it (`.`), to `target` on this machine."""
        ...

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        """End the job's whole process tree; idempotent; returns when it is gone."""
        ...

    def close(self) -> None:
        """Give up connections; jobs go on."""
        ...


class BackendType(Protocol):
    """What an entry point of the group `jupyter_autotrain.backends` leads to: a class that makes its backends."""

    def __call__(self, profile: Profile, context: BackendContext) -> Backend:
        """Make the place of a profile; its options have been checked.

        Raises:
            BackendError: It cannot be made.
        """
        ...

    def options_model(self) -> type[BaseModel]:
        """The model of its options: of `Profile.options` and of its section of the header. All have defaults."""
        ...
